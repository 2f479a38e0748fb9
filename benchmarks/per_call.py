# SPDX-License-Identifier: Apache-2.0
"""What one `run` costs on a tiny model, against the engine's own API in the same process.

Relu on [1, 64], one input, every check on. The calls alternate in short rounds, so that whatever else the machine does
falls on all alike; the figures are medians over the rounds, in microseconds per call, and ratios of these medians.

Run it: ``python benchmarks/per_call.py [ort|openvino]``. The engines are measured in processes of their own, because
ONNX Runtime's threads spin and disturb OpenVINO's.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping

import numpy as np
from onnx import ModelProto, TensorProto, helper

ROUNDS, CALLS, WARM_UP = 41, 2_000, 2_000


def relu_model() -> ModelProto:
    """Relu on [1, 64]."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 64]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", value[:1], value[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def measure(calls: Mapping[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Microseconds per call of each, one figure a round."""
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    figures: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            started = time.perf_counter_ns()
            for _ in range(CALLS):
                call()
            figures[name].append((time.perf_counter_ns() - started) / CALLS / 1_000)
    return figures


def ort_calls() -> dict[str, Callable[[], object]]:
    """ONNX Runtime's ways to run, the reference first, and ours."""
    import onnxruntime
    import onnxruntime.backend

    import onnx_multi_backend as omb

    model, x = relu_model(), np.ones((1, 64), np.float32)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    theirs = onnxruntime.backend.prepare(session)
    ours = omb.prepare(model, device="CPU")
    return {
        "InferenceSession.run": lambda: session.run(None, {"x": x}),
        "onnxruntime.backend rep.run": lambda: theirs.run(x),
        "OrtCpu rep.run, one array": lambda: ours.run(x),
        "OrtCpu rep.run, a list": lambda: ours.run([x]),
        "OrtCpu rep.run, a mapping": lambda: ours.run({"x": x}),
    }


def openvino_calls() -> dict[str, Callable[[], object]]:
    """OpenVINO's way to run, and ours."""
    import openvino

    import onnx_multi_backend as omb

    model, x = relu_model(), np.ones((1, 64), np.float32)
    core = openvino.Core()
    compiled = core.compile_model(
        core.read_model(model.SerializeToString()),
        "CPU",
        {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"},
    )
    ours = omb.prepare(model, device="OPENVINO")
    return {
        "compiled_model(x)": lambda: compiled(x),
        "Openvino rep.run, one array": lambda: ours.run(x),
        "Openvino rep.run, a mapping": lambda: ours.run({"x": x}),
    }


ENGINES = {"ort": ort_calls, "openvino": openvino_calls}


def report(figures: Mapping[str, list[float]]) -> None:
    """Print medians, spreads, and ratios against the first."""
    reference = statistics.median(next(iter(figures.values())))
    print(f"{'call':32} {'median us':>10} {'quartiles':>16} {'ratio':>7}")
    for name, values in figures.items():
        low, median, high = statistics.quantiles(values, n=4)
        print(f"{name:32} {median:10.2f} {f'{low:.2f} - {high:.2f}':>16} {median / reference:7.3f}")


def main() -> None:
    """Measure the engines that were named, each in a process of its own."""
    names = sys.argv[1:] or list(ENGINES)
    if len(names) == 1:
        report(measure(ENGINES[names[0]]()))
        return
    for name in names:
        print(f"\n{name}", flush=True)
        subprocess.run([sys.executable, __file__, name], check=True)


if __name__ == "__main__":
    main()
