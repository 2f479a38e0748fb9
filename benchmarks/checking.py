# SPDX-License-Identifier: Apache-2.0
"""What is looked at before each run: the range of wide integers on OpenVINO, the files of weights with ``verify_weights=True``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from benchmarks.timing import row
from onnx_multi_backend.measuring.clock import Call, in_turns

_TOKENS, _WORDS, _WIDTH = 256, 5000, 256


def text(folder: Path) -> Path:
    """Token ids into a table and through layers, about 1 ms a run, its weights in a file beside it."""
    path = folder / "text.onnx"
    rng = np.random.default_rng(0)
    weights = {"table": rng.normal(size=(_WORDS, _WIDTH)).astype(np.float32)}
    nodes, value = [helper.make_node("Gather", ["table", "ids"], ["embedded"])], "embedded"
    for i in range(4):
        weights[f"w{i}"] = (rng.normal(size=(_WIDTH, _WIDTH)) / 12).astype(np.float32)
        nodes.append(helper.make_node("MatMul", [value, f"w{i}"], [f"m{i}"]))
        nodes.append(helper.make_node("Tanh", [f"m{i}"], [value := f"t{i}"]))
    graph = helper.make_graph(
        nodes,
        "text",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["N", "T"])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["N", "T", _WIDTH])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(made, path, save_as_external_data=True, location="text.weights", size_threshold=1024)
    return path


def checking(folder: Path) -> list[dict[str, Any]]:
    """Each check beside the run that it belongs to, on one thread: what both differ by drowns in the noise of runs."""
    path, ids = text(folder), np.random.default_rng(0).integers(0, _WORDS, (1, _TOKENS))
    openvino = omb.OpenvinoBackend.prepare(path, cache_dir=False, INFERENCE_NUM_THREADS=1)
    ort = omb.OrtCpuBackend.prepare(path, cache_dir=False, intra_op_num_threads=1, verify_weights=True)
    ((_, check),) = openvino._session._checks  # type: ignore[attr-defined]
    assert ort._check is not None
    cases: tuple[tuple[str, Call, Call], ...] = (
        ("Openvino, range of integers", partial(check, ids), partial(openvino.run, ids)),
        ("OrtCpu, verify_weights=True", ort._check, partial(ort.run, ids)),
    )
    rows = []
    for name, checked, run in cases:
        figures = in_turns({"the check": checked, "the run": run}, rounds=201, repeat=10, warm_up=50)
        rows.append(row(f"{_TOKENS} token ids, {name}", "the check", "the run", figures, 0.03))
    return rows
