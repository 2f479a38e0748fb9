# SPDX-License-Identifier: Apache-2.0
"""One model on one preset beside the plain engine, in this process: ``python -m backend_test.real_models.trial``.

It prints a line for each stage that it enters, so that who reads them knows which one ended the process, and its findings last.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import onnx

from backend_test.real_models import plain
from backend_test.real_models.sources import Model
from backend_test.real_models.verdict import Answer, tolerance, verdict

#: The stages, in their order.
STAGES = ("plain", "ours", "reference", "timing")


@dataclass
class Cell:
    """What came of a trial; times are seconds of the processor, of the plain engine and as ratios ours by theirs."""

    verdict: str
    why: str = ""
    warnings: list[str] = field(default_factory=list)
    prepare: float | None = None
    prepare_ratio: float | None = None
    run: float | None = None
    run_ratio: float | None = None


def stage(name: str) -> None:
    print(json.dumps({"stage": name}), flush=True)


def attempt(prepare: Callable[[], plain.Run], feeds: Any) -> Answer:
    """Prepare and run; an engine may raise anything."""
    try:
        return Answer(prepare()(feeds))
    except Exception as error:
        typed = type(error).__module__.startswith("onnx_multi_backend")
        where = "" if typed else traceback.extract_tb(error.__traceback__)[-1].name
        return Answer(None, f"{type(error).__name__}: {' '.join(str(error).split())[:2000]}", typed, where)


def trial(model: Model, preset: str, fates: dict[str, str], timing: bool) -> Cell:
    """Try a model; `fates` says which stages ended the process before, and how."""
    feeds = model.feeds()
    answers: dict[str, Answer] = {}
    caught: list[str] = []
    engines: dict[str, Callable[[], plain.Run]] = {
        "plain": lambda: plain.PLAIN[preset](model.path),
        "ours": lambda: plain.ours(preset, model.path, feeds),
        "reference": lambda: plain.reference(model.path),
    }
    for name, prepare in engines.items():
        if name in fates:
            answers[name] = Answer(None, fates[name], killed=True)
            continue
        stage(name)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            answers[name] = attempt(prepare, feeds)
        if name == "ours":
            caught = sorted(
                {f"{w.category.__name__}: {w.message}" for w in found if "onnx_multi" in w.category.__module__}
            )
    apart = tolerance(onnx.load(model.path, load_external_data=False))
    cell = Cell(*verdict(apart, answers["ours"], answers["plain"], answers["reference"], told=bool(caught)), caught)
    if timing and answers["ours"].outputs and answers["plain"].outputs and "timing" not in fates:
        stage("timing")
        answers.clear()
        cell.prepare, cell.prepare_ratio = _in_turns(engines["plain"], engines["ours"], budget=6)
        theirs, ours = engines["plain"](), engines["ours"]()
        cell.run, cell.run_ratio = _in_turns(lambda: theirs(feeds), lambda: ours(feeds), budget=2, settle=0.03)
    return cell


def _in_turns(
    theirs: Callable[[], object], ours: Callable[[], object], *, budget: float, settle: float = 0
) -> tuple[float, float]:
    """Processor time of theirs, and ours by theirs: medians of turns that take `budget` seconds in all, three at least.

    Before a turn that has to `settle`, the threads of the other engine may end their spinning, and its own are woken. Before
    any other, what is free goes back to the system: else one finds memory that the other has just left, and saves the time in
    which the system clears it.
    """
    taken: dict[Callable[[], object], list[float]] = {theirs: [], ours: []}
    started = time.monotonic()
    repeat, turn = 1, 0
    while turn < 3 or (turn < 41 and time.monotonic() - started < budget):
        for call in (theirs, ours) if turn % 2 else (ours, theirs):
            if settle:
                time.sleep(settle)
                call()
            else:
                _give_memory_back()
            before = time.process_time()
            for _ in range(repeat):
                result = call()
            taken[call].append((time.process_time() - before) / repeat)
            del result
        turn += 1
        if turn == 1 and settle:  # a turn takes about 20 ms
            repeat = max(1, min(200, int(0.02 / max(taken[theirs][0], 1e-5))))
    median = statistics.median(taken[theirs])
    return median, statistics.median(taken[ours]) / median


def _give_memory_back() -> None:
    gc.collect()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


def warm_up(preset: str) -> None:
    """Have both load what they load once a process."""
    value = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 4]) for name in "xy"]
    graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "warm", value[:1], value[1:])
    path = Path(f"{os.environ.get('TMPDIR', '/tmp')}/warm-{os.getpid()}.onnx")
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    try:
        for prepare in (plain.PLAIN[preset], lambda p: plain.ours(preset, p)):
            prepare(path)
    finally:
        path.unlink()


def main() -> None:
    asked = json.loads(sys.argv[1])
    model = Model(
        asked["name"], Path(asked["path"]), asked["source"], Path(asked["inputs"]) if asked["inputs"] else None
    )
    stage("warm-up")
    warm_up(asked["preset"])
    print(json.dumps({"cell": asdict(trial(model, asked["preset"], asked["fates"], asked["timing"]))}), flush=True)
    os._exit(0)  # what an engine does when it is unloaded is not a part of the trial


if __name__ == "__main__":
    main()
