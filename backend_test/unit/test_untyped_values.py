# SPDX-License-Identifier: Apache-2.0
"""Values whose type onnx does not know, read by operators in which its inference ends the process."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import parser

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.models.untyped import may_crash

_OPSETS = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 5, "own" : 1]>'

#: An operator that onnx knows nothing of, then one of those.
_NODES = {
    "EyeLike": "y = EyeLike <dtype: int = 1> (t)",
    "RegexFullMatch": 'y = RegexFullMatch <pattern: string = "a"> (t)',
    "LabelEncoder": 'y = ai.onnx.ml.LabelEncoder <keys_strings = ["a"], values_int64s = [1]> (t)',
}


def _model(node: str, maker: str) -> onnx.ModelProto:
    return parser.parse_model(
        f"{_OPSETS} g (float[2, 2] x) => (float[2, 2] y, float[2, 2] z) {{ t = {maker} (x) {node} z = Abs (x) }}"
    )


@pytest.mark.parametrize("name", _NODES)
def test_the_types_of_the_other_values_are_found(name: str) -> None:
    model = _model(_NODES[name], "own.Op")
    assert may_crash(model)
    before = model.SerializeToString()
    typed = infer(model)
    assert model.SerializeToString() == before
    assert [(n.domain, n.op_type) for n in typed.graph.node] == [(n.domain, n.op_type) for n in model.graph.node]


def test_a_value_of_a_known_type_needs_no_care() -> None:
    model = _model(_NODES["EyeLike"], "Relu")
    assert not may_crash(model)
    assert [v.name for v in infer(model).graph.value_info] == ["t"]


def test_an_initializer_of_an_old_model_has_no_type() -> None:
    """Unless it is an input too."""
    text = '<ir_version: {}, opset_import: ["" : 21]> g ({}) => (double[1, 2] y) <float[1, 2] c = {{1, 2}}> {{ y = EyeLike <dtype = 11> (c) }}'
    for version, inputs, crashes in ((3, "", True), (3, "float[1, 2] c", False), (4, "", False)):
        model = parser.parse_model(text.format(version, inputs))
        assert may_crash(model) == crashes
        assert infer(model).graph.node == model.graph.node


@pytest.mark.parametrize("name", _NODES)
def test_such_a_model_is_refused_and_ends_no_process(
    preset: type[omb.Preset], name: str, fresh: Callable[..., str]
) -> None:
    data = _model(_NODES[name], "own.Op").SerializeToString()
    told = fresh(
        "import onnx_multi_backend as omb\n"
        f"preset, data = omb.presets()[{preset.name!r}], {data!r}\n"
        "try: preset.prepare(data)\n"
        "except omb.OnnxMultiBackendError as error: print(type(error).__name__)"
    )
    assert told in ("InvalidModelError", "UnsupportedModelError")


@pytest.mark.parametrize("name", _NODES)
def test_such_a_body_of_a_loop_ends_no_process(
    openvino: type[omb.Preset], name: str, fresh: Callable[..., str]
) -> None:
    node = _NODES[name].replace("y =", "u =")
    data = parser.parse_model(
        f"""{_OPSETS} g (float[2, 2] x) => (float[2, 2] y) {{
        n = Constant <value_int = 0> () on = Constant <value = bool {{1}}> ()
        y = Loop (n, on, x) <body = body (int64 i, bool go, float[2, 2] s) => (bool again, float[2, 2] r) {{
            again = Identity (go) t = own.Op (s) {node} r = Identity (s) }}> }}"""
    ).SerializeToString()
    told = fresh(
        "import onnx_multi_backend as omb\n"
        f"preset, data = omb.presets()[{openvino.name!r}], {data!r}\n"
        "try: preset.prepare(data)\n"
        "except omb.OnnxMultiBackendError as error: print(type(error).__name__)"
    )
    assert told in ("", "InvalidModelError", "UnsupportedModelError")


def test_one_behind_another_that_is_not_valid(engine: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f"""{_OPSETS} g (int64[n] x) => (int64[n] y) {{ a = ai.onnx.ml.LabelEncoder <values_int64s = [0, 1]> (x)
        y = ai.onnx.ml.LabelEncoder <keys_int64s = [0, 1], values_int64s = [1, 2]> (a) }}"""
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        engine.prepare(model)
