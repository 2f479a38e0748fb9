# SPDX-License-Identifier: Apache-2.0
"""Constants whose elements are in the typed fields of a TensorProto, as ``onnx.helper.make_tensor`` and ONNX's parser write them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnx_multi_backend as omb

_KINDS = (
    "FLOAT",
    "DOUBLE",
    "FLOAT16",
    "INT8",
    "UINT8",
    "INT16",
    "UINT16",
    "INT32",
    "UINT32",
    "INT64",
    "UINT64",
    "BOOL",
)


def _model(tensor: TensorProto, place: str) -> ModelProto:
    info = helper.make_tensor_value_info
    kind, constants, nodes = tensor.data_type, [tensor], []
    joined = helper.make_node("Concat", ["x", tensor.name], ["y"], axis=0)
    if place != "initializer":
        constants, nodes = [], [helper.make_node("Constant", [], [tensor.name], value=tensor)]
    if place == "branch":
        inside = helper.make_graph([*nodes, joined], "then", [], [info("y", kind, None)])
        outside = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "else", [], [info("z", kind, None)])
        nodes = [helper.make_node("If", ["on"], ["out"], then_branch=inside, else_branch=outside)]
    else:
        nodes.append(helper.make_node("Identity", ["y"], ["out"]))
        nodes.insert(-1, joined)
    inputs = [info("x", kind, [4])]
    if place == "branch":
        inputs.append(info("on", TensorProto.BOOL, []))
    graph = helper.make_graph(
        nodes, "typed", inputs, [info("out", kind, [8 if place != "branch" else None])], constants
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("place", ["initializer", "Constant", "branch"])
@pytest.mark.parametrize("kind", _KINDS)
def test_constants_in_typed_fields_are_read(preset: type[omb.Preset], kind: str, place: str) -> None:
    elem_type = getattr(TensorProto, kind)
    tensor = helper.make_tensor("c", elem_type, [4], [1, 0, 1, 1] if kind == "BOOL" else [3, 4, 100, 7])
    assert not tensor.HasField("raw_data")
    constant = numpy_helper.to_array(tensor)
    x = np.zeros(4, constant.dtype)
    feeds = [x, np.array(True)] if place == "branch" else [x]
    try:
        prepared = preset.prepare(_model(tensor, place))
    except omb.UnsupportedModelError as error:
        if not (preset.name.startswith("OrtOpenvino") and "no node of the model runs on" in str(error)):
            raise
        pytest.skip(str(error))
    np.testing.assert_array_equal(prepared.run(feeds)[0], np.concatenate([x, constant]))
