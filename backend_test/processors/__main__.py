# SPDX-License-Identifier: Apache-2.0
"""Run ONNX's suite on each processor that can be had here, two at a time, and join the reports.

``python -m backend_test.processors --out build/processors`` runs all of it, on the host too; with ``--special-values`` the tests of special values
alone, all of them on each emulated processor. With ``--adapted`` each of these, and each case that passes adapted, runs on one of two processors of
different instruction sets, by its name; with ``--processor`` on the one named; with ``--quarter`` a quarter of them runs. A run that was interrupted
goes on with ``--resume``. With ``--rewritten`` what the host's suites have rewritten (`keeping`) is not rewritten again.
"""

from __future__ import annotations

import argparse
import functools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from backend_test.processors import emulation, making, sharing
from backend_test.processors.official import ADAPTED, PRESETS, write_cases
from backend_test.unit.special_values import made
from onnx_multi_backend.conformance import Report, merge
from onnx_multi_backend.conformance.report.junit import render_junit
from onnx_multi_backend.conformance.report.write import write_reports
from onnx_multi_backend.host import cpus, processor

SPECIAL_VALUES = Path(__file__).parents[1] / "unit" / "special_values"
HOST = "host"

#: What is made first: the bytecode of what the emulated processes import.
BYTECODE = "bytecode"

#: Seconds after which a run on a processor is given up.
LIMIT = 4 * 3600.0


@dataclass(frozen=True)
class Task:
    """A run on one processor.

    Parameters
    ----------
    processor : str
        Its name; `HOST` for this one.
    name : str
        A preset's, ``adapted`` or ``special-values``.
    words : tuple of str
        What `within` is called with.
    reports : mapping of str to Path
        The reports that it writes, by preset.
    needs : tuple of str
        What is made on the host before, by its name.
    """

    processor: str
    name: str
    words: tuple[str, ...]
    reports: Mapping[str, Path] = field(default_factory=dict)
    needs: tuple[str, ...] = ()


def on_offer(preset: str, name: str) -> bool:
    """Whether a preset can be used on a processor: some are for those of Intel alone."""
    vendor = processor.current().vendor if name == HOST else emulation.VENDORS[name]
    return not PRESETS[preset] or vendor == "GenuineIntel"


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
    parser.add_argument("--resume", action="store_true", help="keep the folder's reports, and run what has none")
    parser.add_argument("--junit", type=Path, help="a folder that gets JUnit reports, processors-*.xml")
    parser.add_argument(
        "--adapted", action="store_true", help="only special values, and each case that passes adapted once"
    )
    parser.add_argument("--rewritten", type=Path, help="a folder that `pytest --keep-rewritten` wrote")
    parser.add_argument("--quarter", action="store_true", help="of --adapted, every fourth special value and case")
    parser.add_argument("--special-values", action="store_true", help="only special values, which takes minutes")
    parser.add_argument("--processor", action="append", help="only this one; repeatable")
    given = parser.parse_args(arguments)
    if reason := emulation.why_not():
        print(reason, file=sys.stderr)
        return 1
    out: Path = given.out.resolve()
    if not given.resume:
        shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    # Compiling what a process imports takes seconds under emulation: it is done once, on the host.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ.setdefault("PYTHONPYCACHEPREFIX", str(out / "bytecode"))
    quick = given.adapted or given.special_values
    wanted = given.processor or list(emulation.EACH_INSTRUCTION_SET if given.adapted else emulation.PROCESSORS)
    if not given.processor and not quick:
        wanted.insert(0, HOST)
    tasks = []
    if quick:  # before the suites, which may have to wait for what is rewritten
        junit = {name: given.junit / f"processors-{name}-special.xml" for name in wanted} if given.junit else {}
        special = (BYTECODE, "special-values")
        tasks = [
            Task(name, special[1], _special_values(junit.get(name), _share(name, wanted, given)), needs=special)
            for name in wanted
        ]
    makers: dict[str, Callable[[], object]] = {BYTECODE: _import_all}
    if quick:
        os.environ[made.FILE] = str(out / "special-values.pickle")
        makers["special-values"] = functools.partial(_make, made.__name__, os.environ[made.FILE])
    if not given.special_values:
        cases = out / "cases.pickle"
        makers["cases"] = functools.partial(write_cases, cases)
        if given.adapted:  # one process of a processor for all presets: starting one takes seconds there
            for preset in ADAPTED:
                words = (
                    preset,
                    str(_made(preset, out)),
                    *([str(given.rewritten.resolve())] if given.rewritten else []),
                )
                makers[preset] = functools.partial(_make, making.__name__, *words)
            for name in wanted:
                made_of = {preset: _made(preset, out) for preset in ADAPTED if on_offer(preset, name)}
                tasks.append(_suites(name, "adapted", cases, out, made_of, f"--share={_share(name, wanted, given)}"))
        else:  # the slowest first
            on = [(preset, name) for preset in reversed(PRESETS) for name in wanted if on_offer(preset, name)]
            tasks += [_suites(name, preset, cases, out, {preset: None}) for preset, name in on]
    left = [task for task in tasks if not task.reports or not all(path.exists() for path in task.reports.values())]
    with ThreadPoolExecutor(cpus.usable().count) as pool:
        # In order: what is made comes before whoever waits for it, so that no task waits for one that has not begun.
        being_made = {name: pool.submit(make) for name, make in makers.items()}

        def run_made(task: Task) -> bool:
            for name in task.needs:
                being_made[name].result()
            return run(task, out)

        well = list(pool.map(run_made, left))
    written = [(task.processor, preset, path) for task in tasks for preset, path in task.reports.items()]
    reports = [(name, preset, Report.read(path)) for name, preset, path in written if path.exists()]
    if given.junit:
        for name, preset, report in reports:
            path = given.junit / f"processors-{name}-{preset}.xml"
            path.write_text(render_junit(report), encoding="utf-8")
    if reports:
        _join([report for _, _, report in reports], out)
    return int(not all(well) or any(report.unexpected for _, _, report in reports))


def _suites(name: str, what: str, cases: Path, out: Path, made: Mapping[str, Path | None], *options: str) -> Task:
    """The suites of some presets on a processor, each with what is made of its cases beforehand."""
    presets = [preset if path is None else f"{preset}={path}" for preset, path in made.items()]
    words = ("suite", str(cases), str(out / name), *presets, *options)
    reports = {preset: out / name / preset / "report.json" for preset in made}
    return Task(
        name, what, words, reports, (BYTECODE, "cases", *(preset for preset, path in made.items() if path is not None))
    )


def _made(preset: str, folder: Path) -> Path:
    """Where what the host's engine had a preset's cases rewritten into is kept."""
    return folder / f"{preset}-rewritten.pickle"


def _make(*words: str) -> None:
    """Run one of our modules on the host."""
    subprocess.run([sys.executable, "-m", *words], check=True)


def _import_all() -> None:
    """Import on the host what the emulated processes do, so that its bytecode is there."""
    words = [*_special_values(None, "0/1"), "--collect-only"]
    command = [sys.executable, "-m", "backend_test.processors.within", *words]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def _share(name: str, wanted: Sequence[str], given: argparse.Namespace) -> str:
    """Which special values run on a processor: all of them where only they are asked for, else each on one."""
    return "0/1" if given.special_values else f"{wanted.index(name)}/{len(wanted) * (4 if given.quarter else 1)}"


def _special_values(junit: Path | None, share: str) -> tuple[str, ...]:
    report = (f"--junitxml={junit}",) if junit else ()
    only = ("-p", sharing.__name__, f"--share={share}")
    # Rewriting its asserts would take pytest longer than importing what they are about.
    return ("pytest", "-q", "-p", "no:cacheprovider", "--assert=plain", *only, str(SPECIAL_VALUES), *report)


def _join(reports: Sequence[Report], out: Path) -> None:
    joined = merge(reports)
    write_reports(joined, out / "scoreboard")
    width = max(map(len, joined.backends))
    for name in sorted(joined.backends):
        found = joined.of(name)
        print(f"{name:{width}}  {sum(c.label.is_pass for c in found)} of {len(found)} pass")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
