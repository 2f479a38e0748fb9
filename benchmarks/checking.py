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
from benchmarks.timing import Call, in_turns, row

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
    """The same model with and without each check, on one thread."""
    path, ids = text(folder), np.random.default_rng(0).integers(0, _WORDS, (1, _TOKENS))
    openvino = partial(omb.OpenvinoBackend.prepare, path, cache_dir=False, INFERENCE_NUM_THREADS=1)
    ort = partial(omb.OrtCpuBackend.prepare, path, cache_dir=False, intra_op_num_threads=1)
    ranges: dict[str, Call] = {
        "checked": partial(openvino().run, ids),
        "adapt=False": partial(openvino(adapt=False).run, ids),
    }
    verified: dict[str, Call] = {
        "verify_weights=True": partial(ort(verify_weights=True).run, ids),
        "without": partial(ort().run, ids),
    }
    found = [in_turns(calls, rounds=401, repeat=5, warm_up=50) for calls in (ranges, verified)]
    what = f"a run, {_TOKENS} token ids"
    return [
        row(f"{what}, Openvino, range of integers", "checked", "adapt=False", found[0], 1.03),
        row(f"{what}, OrtCpu, files of weights", "verify_weights=True", "without", found[1], 1.03),
    ]
