# SPDX-License-Identifier: Apache-2.0
"""``python -m backend_test.real_models --preset OrtCpu ...``: try all models, each in a process of its own.

What is done already is not done again, unless the versions changed or ``--again`` is given. The exit code is 1 where a cell is worse
than the plain engine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from backend_test.real_models import table
from backend_test.real_models.sources import Model, all_models
from backend_test.real_models.verdict import FINDINGS, KILLED
from benchmarks.__main__ import KEEP_MEMORY
from onnx_multi_backend.tuning import machine

#: Seconds that a model may take, all stages together.
_LIMIT = 400


def ask(model: Model, preset: str, timing: bool) -> dict[str, Any]:
    """Try a model in a process of its own, anew where a stage ended it."""
    fates: dict[str, str] = {}
    while True:
        asked = {
            "name": model.name,
            "path": str(model.path),
            "source": model.source,
            "inputs": str(model.inputs) if model.inputs else None,
            "preset": preset,
            "fates": fates,
            "timing": timing,
        }
        command = [sys.executable, "-m", "backend_test.real_models.trial", json.dumps(asked)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **KEEP_MEMORY}
        ) as child:
            try:
                out, err = child.communicate(timeout=_LIMIT)
                end = f"exit code {child.returncode}"
            except subprocess.TimeoutExpired:
                child.kill()
                out, err = child.communicate()
                end = f"more than {_LIMIT} s"
        told = [json.loads(line) for line in out.splitlines() if line.startswith('{"')]
        if told and "cell" in told[-1]:
            return dict(told[-1]["cell"])
        stages = [line["stage"] for line in told]
        if not stages or stages[-1] in fates or stages[-1] == "warm-up":
            return {"verdict": KILLED, "why": f"{end} before any stage: {err.strip()[-1500:]}"}
        fates[stages[-1]] = f"{end}: {' '.join(err.split())[-300:]}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m backend_test.real_models", description=__doc__)
    parser.add_argument("--preset", action="append", default=[], help="repeat it for several")
    parser.add_argument("--packages", type=Path, help="a folder into which packages with models are installed")
    parser.add_argument("--made", type=Path, action="append", default=[], help="a folder that an exporter wrote")
    parser.add_argument("--out", type=Path, default=Path("build/real-models-tried"))
    parser.add_argument("--again", action="store_true", help="try what was tried before too")
    parser.add_argument("--no-timing", action="store_true", help="only whether the results are right")
    parser.add_argument("--only", help="models whose names contain this")
    parser.add_argument("--table", type=Path, help="write all that is in --out as Markdown")
    given = parser.parse_args()
    found = machine.here()
    setting = {
        "cpu": found.processor,
        "cores": found.cpus,
        "python": platform.python_version(),
        "packages": dict(found.packages),
    }
    versions, timing = setting["packages"], not given.no_timing
    models = all_models(given.packages, given.made)
    worse = []
    for preset in given.preset:
        for number, model in enumerate(models):
            if given.only and given.only not in model.name:
                continue
            path = given.out / preset / f"{model.name.replace('/', '--')}.json"
            entry = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
            done = entry.get("machine", {}).get("packages") == versions and entry.get("timed", 0) >= timing
            if given.again or not done:
                cell = ask(model, preset, timing)
                about = {key: str(value) for key, value in asdict(model).items()}
                entry = {"model": about, "preset": preset, "machine": setting, "timed": timing, **cell}
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(entry, indent=1) + "\n", encoding="utf-8")
                print(f"{number + 1}/{len(models)} {table.line(entry)}", flush=True)
            if entry["verdict"] in FINDINGS:
                worse.append(table.line(entry))
    if given.table is not None:
        given.table.write_text(table.document(given.out), encoding="utf-8")
    print(*worse, f"{len(worse)} cells are worse than the plain engine.", sep="\n")
    sys.exit(bool(worse))


if __name__ == "__main__":
    main()
