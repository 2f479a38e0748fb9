# SPDX-License-Identifier: Apache-2.0
"""What ``isolate=True`` costs: a run of a tiny model, of one that takes about a millisecond, and of one with large inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from benchmarks import models
from benchmarks.timing import row
from onnx_multi_backend.measuring.clock import in_turns

#: Elements of 10 MB.
_LARGE = 10_000_000 // 4


def _model(node: Any, shape: list[int], out: list[int], weights: dict[str, np.ndarray]) -> ModelProto:
    graph = helper.make_graph(
        [node],
        "measured",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def product() -> ModelProto:
    """A product of matrices that takes about a millisecond on one core."""
    weights = np.ones((1024, 1024), np.float32)
    return _model(helper.make_node("MatMul", ["x", "w"], ["y"]), [32, 1024], [32, 1024], {"w": weights})


def summed() -> ModelProto:
    """10 MB in, one number out."""
    return _model(helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0), [_LARGE], [], {})


def isolation(folder: Path) -> list[dict[str, Any]]:
    """A run in a process of its own by a run in this one."""
    rows = []
    for label, model, shape, repeat, limit in (
        ("Relu [1, 64]", models.relu(), (1, 64), 500, 10.0),
        ("MatMul of 1 ms", product(), (32, 1024), 50, 2.0),
        ("10 MB in", summed(), (_LARGE,), 10, 4.0),
    ):
        x = np.ones(shape, np.float32)
        here = omb.OrtCpuBackend.prepare(model, intra_op_num_threads=1)
        there = omb.OrtCpuBackend.prepare(model, intra_op_num_threads=1, isolate=True)
        calls = {"isolate=True: rep.run": lambda m=there, x=x: m.run(x), "rep.run": lambda m=here, x=x: m.run(x)}
        figures = in_turns(calls, rounds=21, repeat=repeat, warm_up=repeat)
        rows.append(row(f"a run, OrtCpu, {label}", "isolate=True: rep.run", "rep.run", figures, limit))
    prepares = {
        "isolate=True: prepare": lambda: omb.OrtCpuBackend.prepare(models.relu(), isolate=True),
        "prepare": lambda: omb.OrtCpuBackend.prepare(models.relu()),
    }
    rows.append(
        row("prepare, OrtCpu, Relu [1, 64]", "isolate=True: prepare", "prepare", in_turns(prepares, rounds=3), 2000.0)
    )
    return rows
