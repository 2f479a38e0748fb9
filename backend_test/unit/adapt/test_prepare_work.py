# SPDX-License-Identifier: Apache-2.0
"""What preparing need not look at, it does not look at: types are inferred, and nodes cut out, only where one is in doubt."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.reference
import pytest
from onnx import TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.counting import counted
from onnx_multi_backend.adapt import shown_node
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.inferring import inference
from onnx_multi_backend.adapt.walked import walked_of
from onnx_multi_backend.engines.openvino.target import OpenvinoTarget
from onnx_multi_backend.engines.session import Built, Payload, RefusedError
from onnx_multi_backend.models.contents import Contents


def plain_resize(scales: list[float], **attributes: Any) -> onnx.ModelProto:
    nodes = [
        models.node("HardSigmoid", ["x"], ["h"], alpha=0.25, beta=0.5),
        models.node("Resize", ["h", "", "scales"], ["y"], **attributes),
    ]
    shape = ["N", 2, "H", "W"]
    return models.model(
        nodes, [models.tensor("x", shape)], [models.tensor("y", shape)], initializers={"scales": np.float32(scales)}
    )


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_common_operators_in_their_common_form_cost_no_inference(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    calls = counted(monkeypatch, inference, "_asked")
    made = plain_resize([1, 1, 2, 2], mode=mode, coordinate_transformation_mode="asymmetric")
    rep = openvino.prepare(made)
    assert calls == []
    y = rep.run(np.float32(np.linspace(-3, 3, 16)).reshape(1, 2, 2, 4))[0]
    assert y.shape == (1, 2, 4, 8)


@pytest.mark.parametrize(
    ("scales", "attributes"),
    [
        ([1, 1, 1.25, 2], {"mode": "nearest"}),
        ([2, 1, 2, 2], {"mode": "linear"}),
        ([1, 1, 2, 2], {"mode": "cubic"}),
        ([1, 1, 2, 2], {"mode": "linear", "coordinate_transformation_mode": "align_corners"}),
        ([1, 1, 2, 2], {"mode": "linear", "antialias": 1}),
    ],
)
def test_others_are_looked_at(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, scales: list[float], attributes: dict[str, Any]
) -> None:
    calls = counted(monkeypatch, inference, "_asked")
    openvino.compatibility(plain_resize(scales, **attributes))
    assert calls


def test_what_rules_write_is_compiled_once_in_the_whole_model(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plain_resize([1, 1, 0.6, 0.7], mode="cubic", exclude_outside=1)
    compiled = counted(monkeypatch, OpenvinoTarget, "_compile")
    rep = openvino.prepare(made)
    assert "resize" in {change.pass_name for change in rep.adaptations}
    assert len(compiled) <= 4  # the model, its nodes and the rewritten model; the Resize takes over 100 nodes
    x = np.random.default_rng(0).normal(size=(1, 2, 9, 11)).astype(np.float32)
    evaluated = onnx.reference.ReferenceEvaluator(made).run(None, {"x": x})[0]
    np.testing.assert_allclose(rep.run(x)[0], evaluated, atol=1e-5)


def test_pieces_that_the_engine_refuses_together_are_shown_one_by_one(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plain_resize([1, 1, 0.6, 0.7], mode="cubic", exclude_outside=1)
    expected = openvino.prepare(made)
    compiled: list[int] = []
    real = OpenvinoTarget.build

    def refuse_the_first_that_is_rewritten(self: OpenvinoTarget, payload: Payload) -> Built:
        if payload.adapted.changes:
            compiled.append(len(payload.adapted.proto.graph.node))
            if len(compiled) == 1:
                raise RefusedError("no", lacks_kernel=True)
        return real(self, payload)

    monkeypatch.setattr(OpenvinoTarget, "build", refuse_the_first_that_is_rewritten)
    rep = openvino.prepare(made)
    assert len(compiled) == 2
    x = np.random.default_rng(0).normal(size=(1, 2, 9, 11)).astype(np.float32)
    np.testing.assert_array_equal(rep.run(x)[0], expected.run(x)[0])


def test_a_name_that_means_two_things_is_not_certain() -> None:
    def branch(value: float) -> onnx.GraphProto:
        scales = onnx.numpy_helper.from_array(np.float32([1, 1, value, value]), "scales")
        output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
        return helper.make_graph([models.node("Resize", ["x", "", "scales"], ["y"])], "b", [], [output], [scales])

    choice = models.node("If", ["c"], ["y"], then_branch=branch(2), else_branch=branch(1.25))
    made = models.model(
        [choice],
        [models.tensor("x", [1, 1, 5, 5]), models.tensor("c", [], TensorProto.BOOL)],
        [models.tensor("y", None)],
        initializers={"own": np.float32([1])},
    )
    assert set(Facts(made).certain) == {"own"}
    made.functions.add(name="f", domain="local")
    assert Facts(made).certain == {}


def test_only_nodes_in_doubt_are_cut_out(ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [models.node("STFT", ["r29", "step", "window"], ["y"])]
    nodes[:0] = [helper.make_node("Relu", [f"r{i - 1}" if i else "x"], [f"r{i}"]) for i in range(30)]
    made = models.model(
        nodes,
        [models.tensor("x", [1, 64, 1])],
        [models.tensor("y", None)],
        initializers={"step": np.int64(8), "window": np.ones(16, np.float32)},
        opsets={"": 17},
    )
    cut, inferred = counted(monkeypatch, shown_node, "single_node_model"), counted(monkeypatch, inference, "_asked")
    rep = ort_cpu.prepare(made)
    assert [change.pass_name for change in rep.adaptations] == ["widen_types"]
    assert len(cut) < 10
    assert len(inferred) < 12
    x = np.random.default_rng(0).normal(size=(1, 64, 1)).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(np.maximum(x[0, :, 0], 0).astype(np.float64), 16)[::8]
    expected = np.fft.rfft(frames)
    np.testing.assert_allclose(rep.run(x)[0][0, ..., 0], expected.real, atol=1e-5)


def test_where_nodes_run_is_not_asked_where_it_is_clear(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnx_multi_backend.engines.openvino.session import OpenvinoSession

    asked = counted(monkeypatch, OpenvinoSession, "placement")
    made = models.model(
        [models.node("Mul", ["x", "x"], ["y"])],
        [models.tensor("x", [3], TensorProto.INT64)],
        [models.tensor("y", [3], TensorProto.INT64)],
    )
    rep = openvino.prepare(made)
    assert rep.run(np.int64([1, -2, 3]))[0].tolist() == [1, 4, 9]
    with pytest.raises(omb.OnnxMultiBackendError, match="beyond"):
        rep.run(np.int64([1, 2**20, 3]))
    assert asked == []


def _net(*nodes: onnx.NodeProto, opset: int = 18, **initializers: Any) -> onnx.ModelProto:
    return models.model(
        list(nodes),
        [models.tensor("x", ["N", 4, "H", "W"])],
        [models.tensor("y", None)],
        initializers=initializers,
        opsets={"": opset},
    )


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(_net(models.node("ReduceMean", ["x", "axes"], ["y"]), axes=np.int64([2, 3])), id="float sums"),
        pytest.param(
            _net(models.node("Shape", ["x"], ["s"]), models.node("Expand", ["x", "s"], ["y"])), id="Expand at run time"
        ),
        pytest.param(
            _net(models.node("Expand", ["x", "sizes"], ["y"]), sizes=np.int64([2, 1, 1, 1, 1])),
            id="Expand to known sizes",
        ),
        pytest.param(_net(models.node("LRN", ["x"], ["y"], size=5)), id="an odd window"),
        pytest.param(_net(models.node("Pad", ["x", "pads"], ["y"]), pads=np.int64([0, 0, 1, 1, 0, 0, 1, 1])), id="Pad"),
        pytest.param(
            _net(
                models.node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
                models.node("DequantizeLinear", ["q", "scale", "zero"], ["y"]),
                scale=np.float32(0.1),
                zero=np.uint8(3),
            ),
            id="one scale",
        ),
        pytest.param(
            _net(
                models.node("Shape", ["x"], ["s"]),
                models.node("Gather", ["s", "first"], ["n"]),
                models.node("Add", ["n", "two"], ["more"]),
                models.node("Div", ["more", "two"], ["half"]),
                models.node("Cast", ["half"], ["y"], to=TensorProto.FLOAT),
                first=np.int64(2),
                two=np.int64(2),
            ),
            id="half of a size",
        ),
    ],
)
def test_what_a_node_says_itself_costs_no_inference(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, made: onnx.ModelProto
) -> None:
    calls = counted(monkeypatch, inference, "_asked")
    openvino.prepare(made)
    assert calls == []


def test_types_are_inferred_of_what_a_node_is_computed_from(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    real = inference._asked

    def asked(model: onnx.ModelProto, **options: Any) -> onnx.ModelProto | None:
        sizes.append(len(model.graph.node))
        return real(model, **options)

    monkeypatch.setattr(inference, "_asked", asked)
    relus = [helper.make_node("Relu", [f"r{i - 1}" if i else "g"], [f"r{i}"]) for i in range(30)]
    nodes = [models.node("Transpose", ["x"], ["t"], perm=[1, 0, 2, 3]), models.node("Gather", ["t", "third"], ["g"])]
    made = _net(*nodes, *relus, models.node("Relu", ["r29"], ["y"]), third=np.int64(2))
    x = np.random.default_rng(0).normal(size=(2, 4, 3, 3)).astype(np.float32)
    np.testing.assert_array_equal(openvino.prepare(made).run(x)[0], np.maximum(x[:, 2], 0))
    assert sizes
    assert set(sizes) == {2}


def test_declared_types_are_taken(openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    made = _net(models.node("Transpose", ["x"], ["t"]), models.node("Gather", ["t", "third"], ["y"]), third=np.int64(2))
    made.graph.value_info.append(models.tensor("t", [3, "H", 4, "N"]))
    calls = counted(monkeypatch, inference, "_asked")
    openvino.prepare(made)
    assert calls == []


def test_constants_count_beside_declared_types(openvino: type[omb.Preset]) -> None:
    repeats = onnx.numpy_helper.from_array(np.int64([1, 2, 3, 4]))
    nodes = [models.node("Constant", [], ["r"], value=repeats), models.node("Tile", ["x", "r"], ["y"])]
    made = models.model(nodes, [models.tensor("x", [1, 2, 3, 4])], [models.tensor("y", [1, 4, 9, 16])])
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    np.testing.assert_array_equal(openvino.prepare(made).run(x)[0], np.tile(x, (1, 2, 3, 4)))


def test_weights_are_not_read_for_a_constant_that_is_left_out(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnx_multi_backend.engines.openvino import frontend

    copied = counted(monkeypatch, frontend, "with_shapes")
    resize = models.node("Resize", ["x", "roi", "scales"], ["y"], mode="nearest")
    openvino.prepare(_net(resize, roi=np.float32([]), scales=np.float32([1, 1, 2, 2])))
    assert copied == []


def test_nodes_that_openvino_takes_are_asked_about_together(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses the last node, for which it looks at the others too: one by one, that took 29 compilations."""
    operators = [
        "Sin",
        "Cos",
        "Tan",
        "Asin",
        "Acos",
        "Atan",
        "Sinh",
        "Cosh",
        "Asinh",
        "Atanh",
        "Exp",
        "Erf",
        "Abs",
        "Neg",
    ]
    nodes = [models.node(op_type, [f"v{k}"], [f"v{k + 1}"]) for k, op_type in enumerate(operators)]
    shape = [3, 5, 7, 11]  # which no other test asks about
    nodes.append(models.node("Reshape", ["v0", "sizes"], ["y"]))
    made = models.model(
        nodes,
        [models.tensor("v0", shape)],
        [models.tensor("y", None), models.tensor(f"v{len(operators)}", None)],
        initializers={"sizes": np.array([2, 2], np.int64)},
    )
    calls = counted(monkeypatch, OpenvinoTarget, "_compile")
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(made)
    assert len(calls) < 20


def test_a_node_that_openvino_refuses_among_others_is_named(openvino: type[omb.Preset]) -> None:
    nodes = [models.node("Relu", ["x"], ["a"]), models.node("Unknown", ["a"], ["b"]), models.node("Abs", ["b"], ["y"])]
    with pytest.raises(omb.OnnxMultiBackendError, match="Unknown"):
        openvino.prepare(models.model(nodes, [models.tensor("x")], [models.tensor("y")]))


#: As exporters write them: the batch is open, and what nodes make is declared.
DECLARED = {
    "attention whose heads are moved in three axes": """(float[N, 6, 8] x) => (float[N, 2, 6, 4] y)
        <int64[3] flat = {6, -1, 4}, int64[4] heads = {-1, 2, 6, 4}, float[6, N, 8] t, float[6, M, 4] f, float[M, 6, 4] g, float[N, 2, 6, 4] q,
        float[N, 2, 4, 6] k, float[N, 2, 6, 6] s, float[N, 2, 6, 6] w>
        { t = Transpose <perm = [1, 0, 2]> (x) f = Reshape (t, flat) g = Transpose <perm = [1, 0, 2]> (f) q = Reshape (g, heads)
        k = Transpose <perm = [0, 1, 3, 2]> (q) s = MatMul (q, k) w = Softmax <axis = -1> (s) y = MatMul (w, q) }""",
    "term of a product that is computed of constants": """(float[N, 4, 3] x, float[N, 3, 4] z) => (float[N, 4, 4] y)
        <float[8] table = {1, 2, 3, 4, 5, 6, 7, 8}, int64[4] i = {3, 1, 0, 2}, float[4] term, float[N, 4, 4] m>
        { term = Gather (table, i) m = MatMul (x, z) y = Add (m, term) }""",
    "rows that are there": """(float[3, 4] x) => (float[2, 4] y) <int64[2, 1] i = {2, -3}> { r = Relu (x) y = GatherND (x, i) }""",
    "product of what is quantized in a run": """(float[N, 3, 4] x) => (int32[N, 3, 2] y)
        <uint8[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> { q, s, z = DynamicQuantizeLinear (x) y = MatMulInteger (q, w, z) }""",
}


@pytest.mark.parametrize("body", DECLARED.values(), ids=DECLARED)
def test_what_is_declared_costs_no_inference(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    calls = counted(monkeypatch, inference, "_asked")
    openvino.prepare(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {body}'))
    assert calls == []


def test_scales_are_not_moved_through_what_quantizes_in_a_run(openvino: type[omb.Preset]) -> None:
    """As in a quantized transformer, whose table of words is dequantized where it is read."""
    made = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 19]> g (int64[N, 4] i) => (float[N, 4, 4] y)
        <int8[6, 2] table = {10, -20, 31, 47, -50, 69, 70, 83, 97, -101, 113, 127}, float step = {0.05}, uint8[2, 2] w = {1, 2, 3, 4}>
        { rows = Gather (table, i) x = DequantizeLinear (rows, step) q, s, z = DynamicQuantizeLinear (x) p = MatMulInteger (q, w, z)
        c = Cast <to = 1> (p) a = Mul (c, s) t = Transpose <perm = [0, 2, 1]> (a) y = MatMul (a, t) }"""
    )
    rep = openvino.prepare(made)
    assert not any(change.pass_name == "low_precision" for change in rep.adaptations)
    i = np.array([[0, 5, 2, 3], [1, 1, 4, 0]])
    evaluated = onnx.reference.ReferenceEvaluator(made).run(None, {"i": i})[0]
    np.testing.assert_allclose(rep.run(i)[0], evaluated, rtol=1e-5, atol=1e-6)


def test_what_is_left_out_is_not_computed_of_shapes(openvino: type[omb.Preset]) -> None:
    """An output without a name, and an operand that is left out."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[n, 2] x) => (float[n, 2] y)
        <float[1, 2] c = {1, 5}, float m = {3}, int64[1] one = {1}>
        { s = Shape (x) "", i = TopK (s, one) w = Clip (c, , m) y = Mul (x, w) }"""
    )
    walked = walked_of(Contents(made))
    assert "w" in walked.stored
    assert "w" in walked.ahead
    assert "i" not in walked.stored


@pytest.mark.parametrize("call", ["a = my.F (x)", "a = my.F (x, )"])
def test_an_operand_that_a_call_leaves_out(openvino: type[omb.Preset], call: str) -> None:
    function = '<domain: "my", opset_import: ["": 17]> F (i, j) => (o) { k = Identity (j) o = Mul (i, i) }'
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "my": 1]> g (float[2, 2] x) => (float[2, 2] y)
        {{ {call} m = Div (x, a) z = MatMul (m, m) y = Add (z, x) }} {function}"""
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(made)
