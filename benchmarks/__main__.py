# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks [measure ...]``: measure, print a table, and write build/performance.json.

Every measure takes ours and theirs in turns in one process of its own, because the threads of one engine disturb the
other. The figures are medians and quartiles; a ratio is ours by theirs.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

from tabulate import tabulate

from benchmarks.measures import MEASURES
from onnx_multi_backend.host.surroundings import surroundings

#: Where sessions are made and dropped in turns, glibc gives the memory of one back to the kernel or keeps it for the next, by
#: what happens to lie behind it, and that is half of a session's time: here it keeps it, for ours and theirs alike.
KEEP_MEMORY = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**25)}


def machine() -> dict[str, str]:
    """On what the figures were taken."""
    packages = {name: metadata.version(name) for name in ("onnx", "numpy")}
    return {**surroundings(), "python": platform.python_version(), **packages}


def show(value: float, unit: str) -> str:
    """A figure with a unit that suits it."""
    scales = (
        [(1e-3, "us", 1e6), (1, "ms", 1e3), (float("inf"), "s", 1)] if unit == "s" else [(float("inf"), "MB", 1e-6)]
    )
    _, name, factor = next(s for s in scales if value < s[0])
    return f"{value * factor:.4g} {name}"


def table(rows: list[dict[str, Any]]) -> str:
    """The report as Markdown."""
    shown = [
        {
            "measure": r["measure"],
            "ours": f"{r['ours']}: {show(r['ours_median'], r['unit'])}",
            "theirs": f"{r['theirs']}: {show(r['theirs_median'], r['unit'])}",
            "spread": " / ".join(
                f"{(q[1] - q[0]) / m:.0%}"
                for q, m in ((r["ours_quartiles"], r["ours_median"]), (r["theirs_quartiles"], r["theirs_median"]))
            ),
            "ratio": f"{r['ratio']:.3f}",
            "at most": f"{r['limit']:.3g}",
        }
        for r in rows
    ]
    return tabulate(shown, headers="keys", tablefmt="github", disable_numparse=True)


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        name, folder = sys.argv[2:]
        print(json.dumps(MEASURES[name](Path(folder))))
        return
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(f"{__doc__}\nMeasures: {', '.join(MEASURES)}")
        return
    names = sys.argv[1:] or list(MEASURES)
    if unknown := [n for n in names if n not in MEASURES]:
        raise SystemExit(f"There is no measure {', '.join(unknown)}. Measures: {', '.join(MEASURES)}.")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            print(f"{name} ...", file=sys.stderr, flush=True)
            command = [sys.executable, "-m", "benchmarks", "--measure", name, folder]
            env = {**os.environ, **(KEEP_MEMORY if name.startswith(("cold", "warm")) else {})}
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
            rows += json.loads(done.stdout.splitlines()[-1])
    found = {"machine": machine(), "rows": rows}
    path = Path("build/performance.json")
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(table(rows))
    print(f"\n{json.dumps(found['machine'])}\nAll figures: {path}")


if __name__ == "__main__":
    main()
