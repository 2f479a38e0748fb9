# SPDX-License-Identifier: Apache-2.0
"""What an engine accepts and computes wrongly is rewritten, or refused with its cause; what it gets right is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import expected

GENERATOR = np.random.default_rng(3)


def floats(*shape: int) -> np.ndarray:
    return GENERATOR.normal(size=shape).astype(np.float32)


def single(op_type: str, inputs: Sequence[Any], *, opset: int, outputs: int = 1, **attributes: Any) -> ModelProto:
    """A model of one node: a shape is an input of float32, an array an initializer, None an input that is left out."""
    names = [f"x{i}" if given is not None else "" for i, given in enumerate(inputs)]
    shapes = {n: given for n, given in zip(names, inputs, strict=True) if isinstance(given, tuple)}
    values = {n: given for n, given in zip(names, inputs, strict=True) if isinstance(given, np.ndarray)}
    made = [f"y{i}" for i in range(outputs)]
    return models.model(
        [models.node(op_type, names, made, **attributes)],
        [models.tensor(name, shape) for name, shape in shapes.items()],
        [models.tensor(name, None) for name in made],
        initializers=values,
        opsets={"": opset},
        ir_version=10,
    )


def feeds(model: ModelProto) -> list[np.ndarray]:
    """Random numbers for each input: small ones above 1 where integers are wanted."""
    made = []
    for value in model.graph.input:
        shape = [d.dim_value if d.HasField("dim_value") else 3 for d in value.type.tensor_type.shape.dim]
        integers = value.type.tensor_type.elem_type == onnx.TensorProto.INT64
        made.append(GENERATOR.integers(2, 5, shape) if integers else floats(*shape))
    return made


def lstm(peepholes: np.ndarray | None = None, **attributes: Any) -> ModelProto:
    inputs = [(3, 2, 4), floats(1, 12, 4), floats(1, 12, 3), None, None, None, None, peepholes]
    return single("LSTM", inputs[: 8 if peepholes is not None else 3], opset=14, outputs=3, hidden_size=3, **attributes)


def resize(scale: float = 0.5, **attributes: Any) -> ModelProto:
    return single("Resize", [(1, 1, 4, 4), None, np.float32([1, 1, scale, scale])], opset=19, **attributes)


def resize_to(*sizes: int) -> ModelProto:
    given = [(1, 1, 4, 6), None, None, np.int64(sizes)]
    return single("Resize", given, opset=19, axes=[2, 3], keep_aspect_ratio_policy="not_larger")


def max_pool(kernel: int, stride: int, **attributes: Any) -> ModelProto:
    window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2}
    return single("MaxPool", [(1, 1, 4, 4)], opset=12, ceil_mode=1, **window, **attributes)


#: What OpenVINO computes wrongly and no rule writes in another way, with the cause that is told; `test_mended` shows
#: that it is wrong.
WRONG_ON_OPENVINO: dict[str, tuple[ModelProto, str]] = {
    "peepholes with clip": (lstm(floats(1, 9), clip=50.0), "peepholes"),
    "one-sided inverse DFT": (single("DFT", [(2, 4, 2)], opset=17, axis=1, onesided=1, inverse=1), "one-sided"),
    "maximum of regions": (
        single(
            "RoiAlign",
            [(1, 2, 8, 8), np.float32([[0, 0, 5, 5]]), np.int64([0])],
            opset=22,
            mode="max",
            sampling_ratio=2,
        ),
        "corners",
    ),
}


@pytest.mark.parametrize("form", WRONG_ON_OPENVINO)
def test_what_openvino_computes_wrongly_is_refused(openvino: type[omb.Preset], form: str) -> None:
    model, cause = WRONG_ON_OPENVINO[form]
    operator = model.graph.node[0].op_type
    with pytest.raises(
        omb.UnsupportedModelError, match=f"does not compute {operator} correctly.*'the_{operator}': .*{cause}"
    ) as raised:
        openvino.prepare(model)
    assert raised.value.operators == (operator,)
    assert cause in raised.value.reasons[0]


#: What OpenVINO computes wrongly and a rule writes in another way.
REWRITTEN_ON_OPENVINO: dict[str, tuple[ModelProto, str]] = {
    "antialias": (resize(mode="linear", antialias=1), "antialias"),
    "peepholes": (lstm(floats(1, 9)), "peepholes"),
    "exclude_outside": (resize(mode="cubic", exclude_outside=1), "exclude_outside"),
    "aspect ratio": (resize_to(7, 8), "keep_aspect_ratio_policy"),
    "a window beyond the image": (max_pool(1, 2), "ceil_mode"),
    "a window that ends behind the padding": (
        single(
            "AveragePool",
            [(1, 1, 5)],
            opset=19,
            ceil_mode=1,
            count_include_pad=1,
            kernel_shape=[3],
            strides=[2],
            pads=[0, 1],
        ),
        "count_include_pad",
    ),
    "regions without a number of samples": (
        single("RoiAlign", [(1, 2, 8, 8), np.float32([[0, 1, 5, 7]]), np.int64([0])], opset=16, output_width=2),
        "sampling_ratio",
    ),
    "slopes of the last axis": (single("PRelu", [(2, 3, 3), np.float32([1, 2, -3])], opset=16), "slopes"),
    "one-sided DFT": (single("DFT", [(2, 4, 1)], opset=17, axis=1, onesided=1), "one-sided"),
    "DFT along another axis": (single("DFT", [(2, 4, 4, 1), None, np.array(2)], opset=20), "axis is ignored"),
    "a Transpose of nothing": (single("Transpose", [(2, 0, 1)], opset=17, perm=[2, 0, 1]), "of no elements"),
    "DFT along an axis that counts from the end": (single("DFT", [(2, 4, 3, 2)], opset=17, axis=-2), "a negative axis"),
}


@pytest.mark.parametrize("form", REWRITTEN_ON_OPENVINO)
def test_what_openvino_computes_wrongly_is_rewritten(openvino: type[omb.Preset], form: str) -> None:
    model, cause = REWRITTEN_ON_OPENVINO[form]
    prepared = openvino.prepare(model)
    assert any(cause in change.reason for change in prepared.adaptations)
    for _ in range(2):
        values = feeds(model)
        for got, right in zip(prepared.run(values), expected(model, *values), strict=True):
            np.testing.assert_allclose(got, right, rtol=1e-3, atol=1e-4)


RIGHT_ON_OPENVINO: dict[str, ModelProto] = {
    "peepholes of zero": lstm(np.zeros((1, 9), np.float32)),
    "antialias where nothing shrinks": resize(1.5, mode="linear", antialias=1),
    "exclude_outside of a linear Resize": resize(1.5, mode="linear", exclude_outside=1),
    "the aspect ratio as it is": resize_to(8, 12),
    "a last window that starts in the image": max_pool(2, 3),
    "constants of 32 bits with a scale known at run time": single(
        "DequantizeLinear", [np.int32([[3, -7], [2**24 + 2, 5]]), ()], opset=19
    ),
    "a Transpose of nothing that moves another axis": single("Transpose", [(0, 2)], opset=17, perm=[1, 0]),
    "DFT along axis 1": single("DFT", [(2, 4, 4, 1), None, np.array(1)], opset=20),
    "DFT along the axis before the last, which is 1": single("DFT", [(2, 4, 1)], opset=20),
    "a causal mask where all keys are past or new": single(
        "Attention",
        [(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4), None, (1, 2, 2, 4), (1, 2, 2, 4)],
        opset=23,
        outputs=3,
        is_causal=1,
    ),
}


@pytest.mark.parametrize("form", RIGHT_ON_OPENVINO)
def test_what_openvino_gets_right_goes_through_untouched(openvino: type[omb.Preset], form: str) -> None:
    model = RIGHT_ON_OPENVINO[form]
    values = feeds(model)
    prepared = openvino.prepare(model)
    assert not {a.pass_name for a in prepared.adaptations} - {"ir_version", "opset_version"}
    for got, right in zip(prepared.run(values), expected(model, *values), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-3, atol=1e-4)


def test_a_maximal_pooling_of_unknown_size_is_not_refused(openvino: type[omb.Preset]) -> None:
    model = max_pool(1, 2)
    del model.graph.input[0].type.tensor_type.shape.dim[2:]
    model.graph.input[0].type.tensor_type.shape.dim.add(dim_param="h")
    model.graph.input[0].type.tensor_type.shape.dim.add(dim_param="w")
    x = floats(1, 1, 5, 5)
    np.testing.assert_array_equal(openvino.prepare(model).run(x)[0], x[:, :, ::2, ::2])


@pytest.mark.parametrize("place", ["branch", "function"])
def test_it_is_found_in_subgraphs_and_functions(openvino: type[omb.Preset], place: str) -> None:
    text = {
        "branch": """g (bool c, float[2, 4, 2] x) => (float[a, b, d] y) {
            y = If (c) <then_branch = t () => (float[a, b, d] p) { p = DFT <axis = 1, inverse = 1, onesided = 1> (x) },
                        else_branch = e () => (float[a, b, d] q) { q = Identity(x) }> }""",
        "function": """g (float[2, 4, 2] x) => (float[a, b, d] y) { y = local.spectrum(x) }
            <domain: "local", opset_import: ["": 19]> spectrum (v) => (w) { w = DFT <axis = 1, inverse = 1, onesided = 1> (v) }""",
    }[place]
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 19, "local": 1]> {text}')
    with pytest.raises(omb.UnsupportedModelError, match="does not compute DFT correctly.*one-sided"):
        openvino.prepare(model)


def test_a_rewritten_neighbour_does_not_hide_it(openvino: type[omb.Preset]) -> None:
    regions = [(1, 2, 8, 8), np.float32([[0, 0, 5, 5]]), np.int64([0])]
    model = single("RoiAlign", regions, opset=22, mode="max", output_height=2, output_width=2)
    model.graph.node.append(models.node("SpaceToDepth", ["y0"], ["z"], blocksize=2, mode="CRD"))
    model.graph.output[0].name = "z"
    model.opset_import[0].version = onnx.defs.onnx_opset_version()
    with pytest.raises(omb.UnsupportedModelError) as raised:
        openvino.prepare(model)
    assert "RoiAlign" in raised.value.operators


def test_what_cannot_be_rewritten_for_want_of_types_is_refused(ort_cpu: type[omb.Preset]) -> None:
    """Neither ONNX nor this package knows what some operators of ONNX Runtime's own make, so that no rule can be applied behind them."""
    dilated = {"kernel_shape": [2, 2], "dilations": [2, 2], "auto_pad": "SAME_UPPER"}
    model = models.model(
        [
            models.node("Trilu", ["x"], ["u"], domain="com.microsoft"),
            models.node("MaxPool", ["u"], ["y"], **dilated),
        ],
        [models.tensor("x", [1, 1, 4, 4])],
        [models.tensor("y", None)],
        opsets={"com.microsoft": 1},
    )
    with pytest.raises(omb.UnsupportedModelError, match="does not compute MaxPool correctly.*auto_pad") as raised:
        ort_cpu.prepare(model)
    assert raised.value.operators == ("MaxPool",)
    assert not ort_cpu.compatibility(model)
    ort_cpu.prepare(model, adapt=False)


def test_what_is_only_less_exact_is_not_refused(ort_cpu: type[omb.Preset]) -> None:
    model = models.model(
        [models.node("Gelu", ["x"], ["u"], domain="com.microsoft"), models.node("PRelu", ["u", "slope"], ["y"])],
        [models.tensor("x", [2, 3]), models.tensor("slope", [3])],
        [models.tensor("y", None)],
        opsets={"com.microsoft": 1},
    )
    assert ort_cpu.compatibility(model)


def test_nothing_is_looked_at_without_leave(openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("RNN", ["x", "w", "r"], ["", "h"], hidden_size=3, layout=1)],
            "g",
            [models.tensor("x", [3, 2, 4]), models.tensor("w", [1, 3, 4]), models.tensor("r", [1, 3, 3])],
            [models.tensor("h", None)],
        ),
        opset_imports=[helper.make_opsetid("", 14)],
        ir_version=8,
    )
    assert openvino.prepare(model).adaptations
    assert openvino.prepare(model, adapt=False).adaptations == ()
