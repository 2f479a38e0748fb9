# SPDX-License-Identifier: Apache-2.0
"""Channels in another order before a convolution: OpenVINO orders the weights instead, by the inverse of what it has to."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models

ORDERS = ([1, 2, 0], [2, 0, 1], [3, 1, 0, 2], [1, 2, 3, 4, 5, 0], [-1, 0, 1])


def _gathered(order: list[int], *, opset: int = 18, relu: bool = False) -> ModelProto:
    nodes = [helper.make_node("Gather", ["x", "order"], ["g"], axis=1)]
    nodes += [helper.make_node("Relu", ["g"], ["r"])] if relu else []
    nodes.append(helper.make_node("Conv", ["r" if relu else "g", "w"], ["y"], name="conv"))
    return _model(nodes, len(order), {"order": np.array(order)}, opset)


def _model(nodes: list[helper.NodeProto], channels: int, constants: dict[str, np.ndarray], opset: int) -> ModelProto:  # type: ignore[name-defined]
    weights = np.random.default_rng(0).normal(size=(4, channels, 1, 1)).astype(np.float32)
    return models.model(
        nodes,
        [models.tensor("x", ["n", channels, "h", "w"])],
        [models.tensor("y", ["n", 4, "h", "w"])],
        initializers={**constants, "w": weights},
        opsets={"": opset},
    )


def _split(order: list[int], *, opset: int = 18) -> ModelProto:
    parts = [f"p{i}" for i in range(3)]
    made = {"num_outputs": 3} if opset >= 18 else {}
    nodes = [
        helper.make_node("Split", ["x"], parts, axis=1, **made),
        helper.make_node("Concat", [parts[i] for i in order], ["c"], axis=1),
        helper.make_node("Conv", ["c", "w"], ["y"]),
    ]
    return _model(nodes, 3, {}, opset)


FORMS = {
    **{f"Gather {order}": _gathered(order) for order in ORDERS},
    "Gather before a Relu": _gathered([1, 2, 0], relu=True),
    "Gather of opset 11": _gathered([1, 2, 0], opset=11),
    "Split and Concat": _split([1, 2, 0]),
    "Split and Concat of opset 11": _split([2, 0, 1], opset=11),
}


@pytest.mark.parametrize("form", FORMS)
def test_channels_come_in_the_order_that_is_asked_for(preset: type[omb.Preset], form: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = FORMS[form]
    prepared = preset.prepare(model)
    right = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    channels = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    for size in (5, 3, 5):
        x = np.random.default_rng(size).normal(size=(2, channels, size, size)).astype(np.float32)
        np.testing.assert_allclose(prepared.run([x])[0], right.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_the_engine_alone_still_takes_the_inverse_order(openvino: type[omb.Preset], form: str) -> None:
    """Where this fails the engine has been mended: let it have the form."""
    runtime = pytest.importorskip("onnxruntime")
    model = FORMS[form]
    channels = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
    x = np.random.default_rng(1).normal(size=(1, channels, 4, 4)).astype(np.float32)
    right = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
    assert not np.allclose(openvino.prepare(model, adapt=False).run([x])[0], right[0], atol=0.1)


def _made(text: str, **constants: np.ndarray) -> ModelProto:
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}')
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items())
    return made


W3 = np.random.default_rng(0).normal(size=(2, 3, 1, 1)).astype(np.float32)
ORDER = np.array([1, 2, 0])
IO = "(float[1,3,4,4] x) => (float[1,2,4,4] o)"
IMAGE = "(float[1,4,4,3] x) => (float[1,2,4,4] o)"

#: More of the same: what OpenVINO folds, what it moves a Transpose behind, what it does not take for a reversal.
OTHERS = {
    "value_ints": _made(f"{IO} {{ i=Constant<value_ints=[1,2,0]>() g=Gather<axis=1>(x,i) o=Conv(g,w) }}", w=W3),
    "Identity of indices": _made(f"{IO} {{ i=Identity(j) g=Gather<axis=1>(x,i) o=Conv(g,w) }}", w=W3, j=ORDER),
    "the last axis": _made(
        f"{IMAGE} {{ t=Gather<axis=3>(x,i) g=Transpose<perm=[0,3,1,2]>(t) o=Conv(g,w) }}", w=W3, i=ORDER
    ),
    "parts of the last axis": _made(
        f"{IMAGE} {{ a,b,c=Split<axis=3>(x) t=Concat<axis=3>(b,c,a) g=Transpose<perm=[0,3,1,2]>(t) o=Conv(g,w) }}", w=W3
    ),
    "parts of integers": _made(
        "(uint8[1,3,4,4] x) => (float[1,2,4,4] o) "
        "{ a,b,c=Split<axis=1>(x) t=Concat<axis=1>(b,c,a) g=Cast<to=1>(t) o=Conv(g,w) }",
        w=W3,
    ),
    "a reversal before slopes": _made(
        f"{IO} {{ g=Gather<axis=1>(x,i) h=PRelu(g,s) o=Conv(h,w) }}",
        w=W3,
        i=np.array([2, 1, 0]),
        s=np.float32([[[0.1]], [[0.5]], [[0.9]]]),
    ),
    "some of the columns": _made(
        "(float[1,3,4,4] x, float[2,7] t) => (float[2,3] c, float[1,2,4,4] o) { c=Gather<axis=1>(t,i) o=Conv(x,w) }",
        w=W3,
        i=np.array([4, 5, 6]),
    ),
    "some columns in another order": _made(
        "(float[1,3,4,4] x, float[2,7] t) => (float[2,3] c, float[1,2,4,4] o) { c=Gather<axis=1>(t,i) o=Conv(x,w) }",
        w=W3,
        i=np.array([6, 4, 5], np.int32),
    ),
    "from the end": _made(
        "(float[1,4,4,4] x) => (float[1,2,4,4] o) { g=Gather<axis=1>(x,i) o=Conv(g,w) }", w=W3, i=np.array([-1, 0, 1])
    ),
}


@pytest.mark.parametrize("form", OTHERS)
def test_other_forms(preset: type[omb.Preset], form: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = OTHERS[form]
    right = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(5)
    feeds = {}
    for value in model.graph.input:
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        whole = value.type.tensor_type.elem_type != onnx.TensorProto.FLOAT
        feeds[value.name] = (
            random.integers(0, 255, shape, np.uint8) if whole else random.normal(size=shape).astype(np.float32)
        )
    for found, wanted in zip(preset.prepare(model).run(feeds), right.run(None, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_indices_that_are_a_default(preset: type[omb.Preset]) -> None:
    model = _made(
        "(float[1,3,4,4] x, int64[3] i) => (float[1,2,4,4] o) { g=Gather<axis=1>(x,i) o=Conv(g,w) }", w=W3, i=ORDER
    )
    x = np.random.default_rng(2).normal(size=(1, 3, 4, 4)).astype(np.float32)
    right = np.einsum("oc,bchw->bohw", W3[:, :, 0, 0], x[:, ORDER])
    np.testing.assert_allclose(preset.prepare(model).run({"x": x})[0], right, rtol=1e-4, atol=1e-5)


def test_channels_in_their_order_stay_as_they_are(openvino: type[omb.Preset]) -> None:
    assert openvino.prepare(_gathered([0, 1, 2])).adaptations == ()
    assert openvino.prepare(_split([0, 1, 2])).adaptations == ()
