# SPDX-License-Identifier: Apache-2.0
"""Run ONNX's suite on each processor that can be had here, two at a time, and join the reports.

``python -m backend_test.processors --out build/processors`` runs all of it, on the host too; with ``--special-values`` the
tests of special values alone, on the emulated processors, and with ``--adapted`` also the cases that pass adapted.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from backend_test.processors import emulation
from backend_test.processors.official import write_cases
from backend_test.unit.special_values import made
from onnx_multi_backend.conformance import Report, merge
from onnx_multi_backend.conformance.report.junit import render_junit
from onnx_multi_backend.conformance.report.write import write_reports
from onnx_multi_backend.devices import usable_cores

SPECIAL_VALUES = Path(__file__).parents[1] / "unit" / "special_values"
HOST = "host"

#: What the minutes of ``--adapted`` are spent on. EPYC has Haswell's instruction sets under another name, and OrtCpu has had the
#: same labels on every processor: the rest is left to the run of all.
QUICK: Mapping[str, Sequence[str]] = {"Nehalem": ("Openvino",), "Haswell": ("OrtCpu", "Openvino")}

#: Seconds after which a processor is given up.
LIMIT = 4 * 3600.0


@dataclass(frozen=True)
class Task:
    """A run on one processor.

    Parameters
    ----------
    processor : str
        Its name; `HOST` for this one.
    name : str
    words : tuple of str
        What `within` is called with.
    """

    processor: str
    name: str
    words: tuple[str, ...]


def run(task: Task, folder: Path) -> bool:
    """Run a task, and say how it went; what it prints goes to a file of the folder."""
    python, environment = Path(sys.executable), dict(os.environ)
    if task.processor != HOST:
        python = emulation.write_python(task.processor, folder)
        environment = emulation.environment(python)
    log = folder / f"{task.processor}-{task.name}.txt"
    command = [str(python), "-m", "backend_test.processors.within", *task.words]
    started = time.monotonic()
    with log.open("w") as file:
        status: int | str
        try:
            status = subprocess.run(
                command, env=environment, stdout=file, stderr=subprocess.STDOUT, timeout=LIMIT, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            status = "given up"
    took = time.monotonic() - started
    print(f"{task.processor}, {task.name}: exit status {status} after {took:.0f} s, see {log}", flush=True)
    if status != 0:
        print(log.read_text(errors="replace")[-8000:], flush=True)
    return status == 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m backend_test.processors", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder of the reports; it is emptied")
    parser.add_argument("--junit", type=Path, help="a folder that gets JUnit reports, processors-*.xml")
    parser.add_argument("--adapted", action="store_true", help="only special values and the cases that pass adapted")
    parser.add_argument("--special-values", action="store_true", help="only special values, which takes minutes")
    parser.add_argument("--processor", action="append", help="only this one; repeatable")
    given = parser.parse_args(arguments)
    if reason := emulation.why_not():
        print(reason, file=sys.stderr)
        return 1
    out: Path = given.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    cases = out / "cases.pickle"
    if not given.special_values:
        write_cases(cases)
    wanted = given.processor or (list(QUICK) if given.adapted else list(emulation.PROCESSORS))
    if not given.processor and not given.adapted and not given.special_values:
        wanted.insert(0, HOST)
    tasks = []
    if given.adapted or given.special_values:  # the longest first
        os.environ[made.FILE] = str(out / "special-values.pickle")
        subprocess.run([sys.executable, "-m", made.__name__, os.environ[made.FILE]], check=True)
        junit = {name: given.junit / f"processors-{name}-special.xml" for name in wanted} if given.junit else {}
        tasks = [Task(name, "special-values", _special_values(junit.get(name))) for name in wanted]
    for name in () if given.special_values else wanted:
        presets = QUICK.get(name, ("OrtCpu", "Openvino"))
        chosen = ("--adapted", *(f"--preset={preset}" for preset in presets)) if given.adapted else ()
        tasks.append(Task(name, "suite", ("suite", str(cases), str(out / name), *chosen)))
    with ThreadPoolExecutor(usable_cores()) as pool:
        well = list(pool.map(lambda task: run(task, out), tasks))
    reports = {name: Report.read(path) for name in wanted if (path := out / name / "report.json").exists()}
    if given.junit:
        for name, report in reports.items():
            (given.junit / f"processors-{name}.xml").write_text(render_junit(report), encoding="utf-8")
    if reports:
        _join(reports, out)
    return int(not all(well) or (len(reports) < len(wanted) and not given.special_values))


def _special_values(junit: Path | None) -> tuple[str, ...]:
    report = (f"--junitxml={junit}",) if junit else ()
    return ("pytest", "-q", "-p", "no:cacheprovider", str(SPECIAL_VALUES), *report)


def _join(reports: Mapping[str, Report], out: Path) -> None:
    joined = merge(list(reports.values()))
    write_reports(joined, out / "scoreboard")
    width = max(map(len, joined.backends))
    for name in sorted(joined.backends):
        found = joined.of(name)
        print(f"{name:{width}}  {sum(c.label.is_pass for c in found)} of {len(found)} pass")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
