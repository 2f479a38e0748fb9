# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.tuning [MODEL.onnx ...]``: what `tune` finds, beside ONNX Runtime's default session and each preset's defaults.

For each model: `tune` in float32, and with ``min_cosine=0.999``; then the bare session, the best preset's defaults and both setups in turn,
each in processes of its own. ``--exhaustive`` tries the whole space of float32 too, and tells the regret. Without
models, those of PP-OCRv4 are taken.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from tabulate import tabulate

import onnx_multi_backend as omb
from benchmarks import models
from onnx_multi_backend.host.surroundings import surroundings
from onnx_multi_backend.measuring.clock import SETTLE, WAKE, one_turn, wake
from onnx_multi_backend.measuring.intervals import median_of, ratio
from onnx_multi_backend.models import random_inputs
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.candidate import AS_GIVEN, Candidate
from onnx_multi_backend.tuning.contest import Contest
from onnx_multi_backend.tuning.differences import Limits
from onnx_multi_backend.tuning.lanes import lane_maker
from onnx_multi_backend.tuning.space import space_of
from onnx_multi_backend.tuning.trial import Trial
from onnx_multi_backend.tuning.trials import Trials

#: Shapes of inputs that are drawn, by the name of the model's file.
SHAPES = {
    "ch_PP-OCRv4_det_infer": {"x": (1, 3, 320, 320)},
    "ch_PP-OCRv4_rec_infer": {"x": (1, 3, 48, 320)},
    "ch_ppocr_mobile_v2.0_cls_infer": {"x": (1, 3, 48, 192)},
}

#: Rounds in each process, processes one after another, seconds of a turn.
_ROUNDS, _PROCESSES, _TURN = 11, 5, 0.03


class Model(NamedTuple):
    """A model and the input that it is tuned for."""

    path: Path
    feeds: dict[str, np.ndarray]


def opened(path: Path, dims: list[str]) -> Model:
    """A model with an input that is drawn."""
    loaded = load(str(path))
    infos = [*omb.prepare(str(path)).get_inputs()]
    shapes = SHAPES.get(path.stem, {})
    sizes = {f"{name}:{axis}": size for name, shape in shapes.items() for axis, size in enumerate(shape)}
    known = {d for info in infos for d in info.shape or () if isinstance(d, str)}
    known |= {f"{i.name}:{axis}" for i in infos for axis in range(len(i.shape or ()))}
    sizes |= random_inputs.parse_dims([d for d in dims if d.rpartition("=")[0] in known], infos)
    return Model(path, random_inputs.draw(infos, 0, sizes, random_inputs.tables(loaded.proto)))


_bare: Any = None  # in its process: a run of the session


def _open_bare(model: Model) -> None:
    import onnxruntime

    global _bare
    session = onnxruntime.InferenceSession(str(model.path), providers=["CPUExecutionProvider"])
    _bare = partial(session.run, None, model.feeds)


def _time_bare() -> list[float]:
    wake(_bare, WAKE)
    return one_turn(_bare, _TURN)


def in_turn(model: Model, setups: Mapping[str, Setup]) -> dict[str, list[float]]:
    """Seconds of a run, a figure a round: ONNX Runtime's session as one makes it without this package, and each setup.

    The order is another one in each set of processes: which is started first, and which runs behind which, makes up to 4 %.
    """
    names = ["bare", *setups]
    figures: dict[str, list[float]] = {name: [] for name in names}
    for i in range(_PROCESSES):
        order = random.Random(i).sample(names, len(names))
        with contextlib.ExitStack() as stack:
            for name, times in _in_processes(model, order, setups, stack).items():
                figures[name] += times
    return figures


def _in_processes(
    model: Model, order: list[str], setups: Mapping[str, Setup], stack: contextlib.ExitStack
) -> dict[str, list[float]]:
    """Some rounds, each in a new process."""
    make_lane = lane_maker({AS_GIVEN: str(model.path)}, [model.feeds], processes=True)
    turns: dict[str, Callable[[], list[float]]] = {}
    for name in order:
        if name == "bare":
            pool = stack.enter_context(ProcessPoolExecutor(1, multiprocessing.get_context("spawn")))
            pool.submit(_open_bare, model).result()
            turns[name] = lambda pool=pool: pool.submit(_time_bare).result()  # type: ignore[misc]
        else:
            lane = make_lane()
            stack.callback(lane.close)
            lane.prepare(name, setups[name], AS_GIVEN)
            turns[name] = partial(lane.latency, name, _TURN, WAKE)
    figures: dict[str, list[float]] = {name: [] for name in turns}
    for i in range(_ROUNDS):
        for name in random.Random(i).sample(order, len(order)):
            time.sleep(SETTLE)
            figures[name].append(statistics.median(turns[name]()))
    return figures


def exhaustive(model: Model, found: Setup, budget: float) -> tuple[float, str, int]:
    """How many times the time of the best of all configurations the one that was found takes, that best one, and how many there are."""
    presets = [name for name in ("OrtCpu", "Openvino", "OrtOpenvino") if omb.availability()[name].usable]
    everything = [c for name in presets for c in space_of(name, objective="latency").everything() if c.float32]
    make_lane = lane_maker({AS_GIVEN: str(model.path)}, [model.feeds], processes=True)
    with Trials(make_lane, Limits(), examples=1, shared=False, alone=False) as trials:
        contest = Contest(trials, "latency", lambda: budget - trials.seconds)
        tried: list[Trial] = []
        for start in range(0, len(everything), 16):  # so many are held in memory at once
            tried += [t for c in everything[start : start + 16] if (t := trials.try_out(c, limit=60.0)).alive]
            tried = contest.halve(tried, rungs=(3, 4))[:4]
        mine = next((t for t in tried if t.candidate.setup == found), None)
        if mine is None:
            mine = trials.try_out(Candidate(found), limit=60.0)
            tried.append(mine)
        for trial in tried:
            trials.afresh(trial, limit=60.0)
        order = contest.final(tried)
        return contest.ratio(mine, order[0]).median, order[0].candidate.name, len(everything)


def measured(model: Model, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One row for float32, and one with a limit on the cosine."""
    tuned = {
        "float32": omb.tune(str(model.path), model.feeds, budget_s=args.budget, static_shapes=args.static_shapes),
        "cosine 0.999": omb.tune(
            str(model.path),
            model.feeds,
            budget_s=args.budget,
            static_shapes=args.static_shapes,
            min_cosine=0.999,
        ),
    }
    starts = [m for m in tuned["float32"].report.ranked if m.setup == Setup(m.setup.preset)]
    setups = {name: t.setup for name, t in tuned.items()} | {f"default {m.name}": m.setup for m in starts}
    figures = in_turn(model, setups)
    sizes = (_ROUNDS,) * _PROCESSES
    median = {name: median_of(times, sizes) for name, times in figures.items()}
    best_default = min((name for name in figures if name.startswith("default")), key=median.__getitem__)
    for name, t in tuned.items():
        row = {
            "model": model.path.stem,
            "limit": name,
            "ORT ms": median["bare"] * 1e3,
            "tuned ms": median[name] * 1e3,
            "promised ms": t.measurement.median * 1e3,
            "noisy": t.report.noisy,
            "of ORT": ratio(figures[name], figures["bare"], sizes),
            "of best default": ratio(figures[name], figures[best_default], sizes),
            "setup": t.report.chosen,
            "seconds": t.report.seconds,
            "rejected": [m.name for m in t.report.measurements if str(m.outcome) == "inaccurate"],
        }
        if args.exhaustive and name == "float32":
            row["regret"] = exhaustive(model, t.setup, args.exhaustive)
        yield row


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds for each search")
    parser.add_argument("--exhaustive", type=float, default=0.0, metavar="S", help="seconds for trying all")
    parser.add_argument("--static-shapes", action="store_true", help="setups for these shapes alone are allowed")
    parser.add_argument("--dim", action="append", default=[], help="INPUT:AXIS=SIZE, where it is there")
    parser.add_argument("--out", type=Path, default=Path("build/tuning.json"))
    args = parser.parse_args()
    packaged = [models.detection(), models.recognition(), models.classification()] if not args.models else []
    rows: list[dict[str, Any]] = []
    for path in (*packaged, *args.models):
        onnx.checker.check_model(str(path))
        for row in measured(opened(path, args.dim), args):
            rows.append(row)
            print(json.dumps(row, default=str), file=sys.stderr, flush=True)
    args.out.parent.mkdir(exist_ok=True)
    args.out.write_text(
        json.dumps({"machine": surroundings(), "rows": rows}, indent=1, default=str) + "\n", encoding="utf-8"
    )
    shown = [
        {
            "model": r["model"],
            "limit": r["limit"],
            "ORT ms": f"{r['ORT ms']:.2f}",
            "tuned ms (promised)": f"{r['tuned ms']:.2f} ({r['promised ms']:.2f}{', noisy' if r['noisy'] else ''})",
            "of ORT": "{:.2f} ({:.2f} to {:.2f})".format(*r["of ORT"]),
            "of the best default": "{:.2f} ({:.2f} to {:.2f})".format(*r["of best default"]),
            "setup": r["setup"],
            "s": f"{r['seconds']:.0f}",
            **({"regret": "{:.3f} ({})".format(*r["regret"])} if "regret" in r else {}),
        }
        for r in rows
    ]
    print(tabulate(shown, headers="keys", tablefmt="github", disable_numparse=True))
    for limit in dict.fromkeys(r["limit"] for r in rows):
        ratios = [r["of ORT"].median for r in rows if r["limit"] == limit]
        print(
            f"{limit}: geometric mean {math.exp(statistics.mean(map(math.log, ratios))):.3f} of ONNX Runtime's default session"
        )
    print(json.dumps(surroundings()))


if __name__ == "__main__":
    main()
