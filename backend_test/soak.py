# SPDX-License-Identifier: Apache-2.0
"""Many runs, many models prepared and dropped, many shapes: memory stays where it is.

``python -m backend_test.soak --preset OrtCpu --runs 1000000 --prepares 2000 --shapes 500``. What grows is told as the slope of
the resident memory, with its confidence interval; the exit code is 1 where the slope is surely above what is allowed.
"""

from __future__ import annotations

import argparse
import gc
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper
from tabulate import tabulate

#: Resident memory is read so many times a phase.
_SAMPLES = 60
#: The share of a phase in which memory may still grow: pools and caches fill.
_WARM_UP = 0.25
#: What a phase may grow by in all, in bytes: less is a page here and there.
_ALLOWED = 4 << 20


@dataclass
class Slope:
    """How memory grows with the steps of a phase.

    Attributes
    ----------
    bytes_a_step, error : float
        The slope, and half of its 95 % confidence interval.
    steps : int
    """

    bytes_a_step: float
    error: float
    steps: int

    @property
    def flat(self) -> bool:
        """Whether the phase grows by no more than is allowed, or may be so."""
        return (self.bytes_a_step - self.error) * self.steps <= _ALLOWED


def fit(samples: list[tuple[int, int]]) -> Slope:
    """The slope of a line through (step, bytes), after the warm-up.

    Neighbouring samples are not independent, so the interval is that of the means of ten blocks.
    """
    steps = samples[-1][0]
    kept = [s for s in samples if s[0] > steps * _WARM_UP]
    blocks = [b for b in np.array_split(np.array(kept, float), 10) if len(b)]
    x, y = np.array([b.mean(0) for b in blocks]).T
    around = x - x.mean()
    spread = float((around**2).sum())
    slope = float((around * y).sum()) / spread
    left = y - y.mean() - slope * around
    degrees = max(len(x) - 2, 1)
    error = 2.31 * math.sqrt(float((left**2).sum()) / degrees / spread)  # Student's t for 8 degrees of freedom
    return Slope(slope, error, steps)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def small_model() -> ModelProto:
    """Two layers on a batch of any size."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal((16, 16), np.float32), name) for name in ("w", "v")]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MatMul", ["b", "v"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "soak", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def rewritten_model() -> ModelProto:
    """A model that adaptation has something to do with: a newer opset, an operator of a function's body."""
    nodes = [helper.make_node("Swish", ["x"], ["a"]), helper.make_node("Gelu", ["a"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 16]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "soak", ends[:1], ends[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


def phases(backend: Any, runs: int, prepares: int, shapes: int) -> Iterator[tuple[str, int, Callable[[int], None]]]:
    """Each phase's name, its steps, and what it does in one."""
    model = small_model()
    prepared = backend.prepare(model)
    x = np.ones((4, 16), np.float32)
    yield "runs", runs, lambda _: prepared.run([x])

    models = [model, rewritten_model()]

    def prepare(step: int) -> None:
        backend.prepare(models[step % 2]).run([x])
        if step % 20 == 0:
            gc.collect()

    yield "prepares", prepares, prepare
    batches = [np.ones((1 + n, 16), np.float32) for n in range(shapes)]
    # Each shape several times, in turns: what is kept for a shape may be kept once.
    yield "shapes", 8 * shapes, lambda step: prepared.run([batches[step % shapes]])


def soak(name: str, runs: int, prepares: int, shapes: int) -> list[tuple[str, Slope, float]]:
    """Run all phases on a preset; each one's name, slope and seconds."""
    from backend_test.search.engines import find_preset

    found = []
    for phase, steps, step in phases(find_preset(name), runs, prepares, shapes):
        if not steps:
            continue
        every = max(1, steps // _SAMPLES)
        samples: list[tuple[int, int]] = []
        started = time.monotonic()
        for number in range(1, steps + 1):
            step(number)
            if number % every == 0:
                samples.append((number, resident()))
        found.append((phase, fit(samples), time.monotonic() - started))
    return found


def main(arguments: list[str] | None = None) -> int:
    """Soak presets, print a table, and return 1 where memory grows."""
    parser = argparse.ArgumentParser(prog="python -m backend_test.soak", description=str(__doc__).splitlines()[0])
    parser.add_argument("--preset", action="append", help="may be repeated")
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--prepares", type=int, default=2_000)
    parser.add_argument("--shapes", type=int, default=500)
    options = parser.parse_args(arguments)
    if not Path("/proc/self/statm").exists():
        parser.error("reads the resident memory from /proc: Linux")
    warnings.simplefilter("ignore")
    rows, grows = [], False
    for preset in options.preset or ["OrtCpu"]:
        for phase, slope, seconds in soak(preset, options.runs, options.prepares, options.shapes):
            interval = f"{slope.bytes_a_step:.3g} ± {slope.error:.2g}"
            grown = f"{slope.bytes_a_step * slope.steps / 2**20:.2f} MiB"
            rows.append(
                (preset, phase, slope.steps, interval, grown, f"{seconds:.0f} s", "flat" if slope.flat else "GROWS")
            )
            grows |= not slope.flat
    print(tabulate(rows, ("preset", "phase", "steps", "bytes a step (95 %)", "in all", "took", "")))
    print(f"onnx {onnx.__version__}, Python {sys.version.split()[0]}")
    return int(grows)


if __name__ == "__main__":
    sys.exit(main())
