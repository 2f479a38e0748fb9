# SPDX-License-Identifier: Apache-2.0
"""Types of a model's values that are known are those of a changed copy too."""

from __future__ import annotations

import onnx.parser
import pytest
from onnx import ModelProto, helper

from onnx_multi_backend.adapt.single_node import carry_types, typed_of, types_shared

MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[n, 4] x) => (float[a, b, c] y) <int64[3] sizes = {0, 2, 2}> {
    t = Reshape (x, sizes) y = Neg (t) }"""


def _with_one_more(model: ModelProto) -> ModelProto:
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.graph.node[-1].input[0] = "kept"
    copy.graph.node.insert(len(copy.graph.node) - 1, helper.make_node("Max", ["t", "t"], ["kept"]))
    return copy


def _sizes(model: ModelProto, name: str) -> list[int | str]:
    found = next(v for v in (*model.graph.value_info, *model.graph.output) if v.name == name)
    return [d.dim_value or d.dim_param for d in found.type.tensor_type.shape.dim]


def test_what_is_new_alone_is_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.parser.parse_model(MODEL)
    changed = _with_one_more(model)
    again = _with_one_more(changed)
    again.graph.node[-2].output[0] = again.graph.node[-1].input[0] = "kept twice"
    with types_shared():
        assert _sizes(typed_of(model).model, "t") == ["n", 2, 2]
        monkeypatch.setattr("onnx_multi_backend.adapt.single_node.infer", None)
        carry_types(model, changed)
        carry_types(changed, again)  # of one that nobody asked about
        assert _sizes(typed_of(again).model, "kept twice") == ["n", 2, 2]
        assert _sizes(typed_of(changed).model, "kept") == ["n", 2, 2]


def test_what_nobody_asked_about_is_not_carried() -> None:
    model = onnx.parser.parse_model(MODEL)
    changed = _with_one_more(model)
    with types_shared():
        carry_types(model, changed)
        assert _sizes(typed_of(changed).model, "kept") == ["n", 2, 2]
