# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO's built-in provider computes wrongly, and no rule writes in another way, runs on the CPU provider."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from onnx_multi_backend.adapt import lowering
from onnx_multi_backend.adapt.engine import Engine
from onnx_multi_backend.adapt.lowering import lower
from onnx_multi_backend.adapt.pipeline import Adapted
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines.ort.openvino_ep import left_to_cpu
from onnx_multi_backend.engines.placement import MisplacedError
from onnx_multi_backend.host.applies import applies

pytestmark = [
    pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning"),
    pytest.mark.skipif(not applies({"onnxruntime": "<1.31"}), reason="of the built-in provider"),
]
FAR = 2**40 + 5
#: What the provider takes beside the node that is tried.
BESIDE = "a1 = Relu (a) a2 = Tanh (a1) b = Sigmoid (a2)"


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def model(inputs: str, outputs: str, nodes: str, constants: str = "", opset: int = 18) -> ModelProto:
    constants = f"<{constants}>" if constants else ""
    text = f"({inputs}, float[k] a) => ({outputs}, float[k] b) {constants} {{ {nodes} {BESIDE} }}"
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')


def branching(then: str, otherwise: str, shape: str, inputs: str = "float[n, 3] x") -> ModelProto:
    return model(
        f"{inputs}, bool c",
        f"float[{shape}] y",
        f"""y = If (c) <then_branch = t () => (float[{shape}] p) {{ {then} }},
                    else_branch = e () => (float[{shape}] q) {{ {otherwise} }}>""",
    )


def ran(preset: type[omb.Preset], made: ModelProto, op_type: str, runs: list[list[Any]], expected: list[Any]) -> Any:
    """Run A, B and A again; the operator runs on the CPU provider alone, and other nodes do not."""
    prepared = preset.prepare(made)
    assert "left_to_cpu" in {a.pass_name for a in prepared.adaptations}
    placed = prepared.placement()
    assert {n.provider for n in placed if n.op_type == op_type} == {"CPUExecutionProvider"}
    assert {n.provider for n in placed if n.op_type == "Tanh"} == {"OpenVINOExecutionProvider"}
    beside = floats(4)
    for values, right in [*zip(runs, expected, strict=True), (runs[0], expected[0])]:
        np.testing.assert_allclose(prepared.run([*values, beside])[0], right, rtol=1e-5)
    return prepared


@pytest.mark.parametrize("opset", [11, 13, 21])
def test_a_branch_that_changes(openvino_ep: type[omb.Preset], opset: int) -> None:
    made = branching("p = Exp (x)", "q = Neg (x)", "n, 3")
    made.opset_import[0].version = opset
    x, longer = floats(2, 3), floats(5, 3)
    runs = [[v, np.array(c)] for v, c in ((x, True), (x, False), (longer, False), (longer, True))]
    ran(openvino_ep, made, "If", runs, [np.exp(x), -x, -longer, np.exp(longer)])


def test_nodes_of_a_branch_that_nothing_reads(openvino_ep: type[omb.Preset]) -> None:
    """The provider takes them by themselves, and then fails."""
    dead = "k = Constant <value = float[3] {1.0, 2.0, 3.0}> () l = Mish (k) m = Tan (l)"
    made = branching("p = Exp (x)", f"{dead} q = Neg (x)", "n, 3")
    x = floats(2, 3)
    ran(openvino_ep, made, "If", [[x, np.array(c)] for c in (True, False)], [np.exp(x), -x])


def test_shapes_that_no_result_needs_do_not_count(openvino_ep: type[omb.Preset]) -> None:
    made = branching("r = Cosh (x) p = Exp (z)", "q = Neg (z)", "2", inputs="float[n, 3] x, float[2] z")
    prepared = openvino_ep.prepare(made)
    assert {n.provider for n in prepared.placement() if n.op_type == "If"} == {"OpenVINOExecutionProvider"}
    z = floats(2)
    for condition, right in ((True, np.exp(z)), (False, -z), (True, np.exp(z))):
        np.testing.assert_allclose(prepared.run([floats(4, 3), z, np.array(condition), floats(4)])[0], right, rtol=1e-5)


@pytest.mark.parametrize("opset", [13, 18, 21])
def test_any_other_node(openvino_ep: type[omb.Preset], opset: int) -> None:
    """OpenVINO ignores the peepholes of LSTM."""
    nodes = "s, y = LSTM <hidden_size = 2> (x, w, r, , , , , p)"
    inputs = "float[t, 1, 3] x, float[1, 8, 3] w, float[1, 8, 2] r, float[1, 6] p"
    made = model(inputs, "float[1, 1, 2] y", nodes, opset=opset)
    weights = [floats(1, 8, 3), floats(1, 8, 2), floats(1, 6)]
    runs = [[floats(t, 1, 3), *weights] for t in (3, 5)]
    right = [list(omb.OrtCpuBackend.prepare(made).run([*values, floats(4)]))[0] for values in runs]
    ran(openvino_ep, made, "LSTM", runs, right)


@pytest.mark.parametrize("kind", ["float", "int32"])
@pytest.mark.parametrize("largest", [0, 1])
def test_equal_values_of_which_some_are_taken(openvino_ep: type[omb.Preset], kind: str, largest: int) -> None:
    """The lower index comes first."""
    nodes = f"z = Identity (x) v, y = TopK <largest = {largest}> (z, k)"
    made = model(f"{kind}[n, 16] x", "int64[n, 12] y", nodes, "int64[1] k = {12}")
    dtype = {"float": np.float32, "int32": np.int32}[kind]
    runs = [np.random.default_rng(n).integers(0, 4, (n, 16)).astype(dtype) for n in (3, 5)]
    right = [np.argsort(-x if largest else x, kind="stable")[:, :12] for x in runs]
    ran(openvino_ep, made, "TopK", [[x] for x in runs], right)


@pytest.mark.parametrize(
    ("op_type", "kind", "right"),
    [
        ("Mul", "int64", lambda x: x * FAR),
        ("Concat <axis = 0>", "int64", lambda x: np.append(x, FAR)),
    ],
)
def test_constants_beyond_int32(openvino_ep: type[omb.Preset], op_type: str, kind: str, right: Any) -> None:
    made = model("int64[n] x", f"{kind}[m] y", f"y = {op_type} (x, far)", f"int64[1] far = {{{FAR}}}")
    runs = [np.array([1, -7, 2**31 - 1]), np.array([0])]
    ran(openvino_ep, made, op_type.split()[0], [[x] for x in runs], [right(x) for x in runs])


@pytest.mark.parametrize(("op_type", "right"), [("Greater", np.greater), ("Equal", np.equal)])
def test_comparisons_with_constants_beyond_int32_stay(openvino_ep: type[omb.Preset], op_type: str, right: Any) -> None:
    """A rule writes them in another way."""
    made = model("int64[n] x", "bool[m] y", f"y = {op_type} (x, far)", f"int64[1] far = {{{FAR}}}")
    prepared = openvino_ep.prepare(made)
    assert "left_to_cpu" not in {change.pass_name for change in prepared.adaptations}
    for x in (np.array([1, -7, 2**31 - 1]), np.array([0])):
        np.testing.assert_array_equal(prepared.run([x, floats(4)])[0], right(x, FAR))


def test_numbers_beyond_int32_reach_no_other_node(openvino_ep: type[omb.Preset]) -> None:
    made = model("int64[n] x", "int64[n] y", "z = Mul (x, far) y = Sub (z, x)", f"int64[1] far = {{{FAR}}}")
    with pytest.raises(omb.UnsupportedModelError, match="constant 'far' is beyond what int32 holds"):
        openvino_ep.prepare(made)


@pytest.mark.parametrize("fallback", ["partial", "none", "full"])
def test_fallback_decides(openvino_ep: type[omb.Preset], fallback: str) -> None:
    """With this node alone, none is left to the provider."""
    text = "(float[n] x, bool c) => (float[n] y) { y = If (c) <then_branch = t () => (float[n] p) { p = Exp (x) }, "
    text += "else_branch = e () => (float[n] q) { q = Neg (x) }> }"
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    if fallback != "full":
        wanted = "no node of the model runs on OpenVINO" if fallback == "partial" else "does not compute If correctly"
        with pytest.raises(omb.UnsupportedModelError, match=wanted):
            openvino_ep.prepare(made, fallback=fallback)
        return
    prepared = openvino_ep.prepare(made, fallback=fallback)
    x = floats(3)
    for condition, right in ((True, np.exp(x)), (False, -x)):
        np.testing.assert_allclose(prepared.run([x, np.array(condition)])[0], right, rtol=1e-5)


@pytest.mark.parametrize("op_type", ["Shape", "EyeLike"])
def test_who_looks_at_a_shape_may_read_any_number(openvino_ep: type[omb.Preset], op_type: str) -> None:
    outputs = "int64[2] y" if op_type == "Shape" else "int64[n, m] y"
    prepared = openvino_ep.prepare(model("int64[n, m] x", outputs, f"y = {op_type} (x)"), fallback="full")
    right = np.array([2, 3]) if op_type == "Shape" else np.eye(2, 3)
    np.testing.assert_array_equal(prepared.run([np.full((2, 3), FAR), floats(4)])[0], right)


@pytest.mark.parametrize("op_type", ["Max", "Min", "Sum"])
@pytest.mark.parametrize("opset", [8, 13, 21])
def test_a_node_that_passes_an_input_on(openvino_ep: type[omb.Preset], op_type: str, opset: int) -> None:
    text = f"(float[n, 3] x) => (float[n, 3] y) {{ y = {op_type} (x) }}"
    made = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {text}')
    prepared = openvino_ep.prepare(made)
    for x in (floats(2, 3), floats(5, 3), floats(2, 3) + 1):
        np.testing.assert_array_equal(prepared.run(x)[0], x)


def test_an_if_beside_a_loop_that_is_left(openvino_ep: type[omb.Preset]) -> None:
    """The provider's process would end: the If holds a loop that reads values from outside."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[3] v, float[2, 3] w, float[3] x, bool c, float[k] a) => (float[3] r, float[3] y, float[k] b)
          <int64 n = {2}, bool go = {1}> {
            r = Loop (n, go, v) <body = l (int64 i, bool g, float[3] s) => (bool h, float[3] t) {
                h = Identity (g) t = Add (s, x) }>
            y = If (c) <then_branch = t () => (float[3] p) {
                            q = Scan <num_scan_inputs = 1, body = s (float[3] z) => (float[3] o) { o = Add (z, x) }> (w)
                            p = ReduceSum <keepdims = 0> (q, axis) },
                        else_branch = e () => (float[3] f) { f = Neg (x) }>
            a1 = Relu (a) a2 = Tanh (a1) b = Sigmoid (a2) }"""
    )
    made.graph.initializer.add(name="axis", data_type=7, dims=[1], int64_data=[0])
    prepared = openvino_ep.prepare(made)
    v, w, x = floats(3), floats(2, 3), floats(3) * 2
    for condition, right in ((True, (w + x).sum(axis=0)), (False, -x)):
        results = prepared.run([v, w, x, np.array(condition), floats(4)])
        np.testing.assert_allclose(results[0], v + 2 * x, rtol=1e-5)
        np.testing.assert_allclose(results[1], right, rtol=1e-5)


def test_what_the_cpu_provider_lacks_too_is_not_left_to_it(
    openvino_ep: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []
    written = left_to_cpu.left_to_cpu

    def recorded(site: Site) -> Iterator[ModelProto]:
        tried.append(site.op_type)
        yield from written(site)

    monkeypatch.setattr(left_to_cpu, "left_to_cpu", recorded)
    with pytest.raises(omb.UnsupportedModelError, match="ImageDecoder"):
        openvino_ep.prepare(model("uint8[n] x", "uint8[h, w, 3] y", "y = ImageDecoder (x)", opset=20))
    assert tried == []


def test_the_pieces_of_what_runs_elsewhere_as_a_whole_are_not_asked_about(
    openvino_ep: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No way to write this RoiAlign runs on the provider, and a session was built for each: it has all the pieces."""
    asked: list[tuple[object, object]] = []

    def counted(adapted: Adapted, engine: Engine, within: Engine, **options: Any) -> Iterator[Adapted]:
        asked.append((engine, within))
        return lower(adapted, engine, within, **options)

    monkeypatch.setattr(lowering, "lower", counted)
    nodes = "y = RoiAlign <mode = 'max', output_height = 2, output_width = 2> (x, b, i)".replace("'", '"')
    inputs = "float[1, 1, 8, 8] x, float[r, 4] b, int64[r] i"
    text = f"({inputs}) => (float[r, 1, 2, 2] y) {{ {nodes} }}"
    with pytest.raises(MisplacedError):
        openvino_ep.prepare(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}'))
    assert len(asked) == 6  # where every piece is asked about, 9


def test_expanding_to_nothing_is_not_shown_alone(openvino_ep: type[omb.Preset]) -> None:
    """Of float16 it ended the process that asked."""
    made = model(
        "float16[1, 0, 3] x", "float16[1, 0, 3] y", "h = Neg (x) y = Expand (h, s)", "int64[3] s = {1, 0, 3}", opset=9
    )
    assert openvino_ep.prepare(made).run([np.zeros((1, 0, 3), np.float16), floats(2)])[0].shape == (1, 0, 3)


def test_what_is_left_to_the_cpu_is_not_shown_to_the_provider(openvino_ep: type[omb.Preset]) -> None:
    """Shown alone, a Compress that chooses nothing ended the process; nobody has an Acos of float64."""
    body = "q = Compress <axis = 1> (c, none) r = Identity (p)"
    made = model(
        "float16[2] v, bool[1, 1] c",
        "float16[2] w, double[1] z",
        f"z = Acos (d) w = Scan <num_scan_inputs = 1, body = e (float16 p) => (float16 r) {{ {body} }}> (v)",
        "bool[1] none = {0}, double[1] d = {0.5}",
        opset=11,
    )
    with pytest.raises(omb.UnsupportedModelError):
        openvino_ep.prepare(made)


@pytest.mark.parametrize("step", ["m = LeakyRelu (f) r = Identity (p)", "m = LeakyRelu (f) r = Add (p, m)"])
def test_a_scan_in_a_branch_may_read_from_outside(openvino_ep: type[omb.Preset], step: str) -> None:
    """OpenVINO's frontend refused such an If, or ended the process."""
    body = f"e (float[3] p) => (float[3] r) {{ {step} }}"
    then = f"t1 = Erf (g) p = Scan <num_scan_inputs = 1, body = {body}> (x)"
    made = branching(then, "q = Neg (x)", "5, 3", "float[5, 3] x, float f, float g")
    x, f, g = floats(5, 3), np.array(0.5, np.float32), np.array(2, np.float32)
    runs = [[x, f, g, np.array(chosen)] for chosen in (True, False)]
    ran(openvino_ep, made, "If", runs, [x + f if "Add" in step else x, -x])


def test_what_may_stay_does_not_hold_back_what_may_not(openvino_ep: type[omb.Preset]) -> None:
    """The DFT, whose float64 form the provider cannot load here, runs as it is; the Where is written out."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 19]>
        g (float[d, e, 1] x, int64 n, int64 m, bool c) => (float[r, s, t] y, int64 z) { y = DFT <axis = 1> (x, n) z = Where (c, n, m) }"""
    )
    prepared = openvino_ep.prepare(made)
    assert [change.pass_name for change in prepared.adaptations] == ["exact_integers"]
    feeds = {"x": floats(2, 3, 1), "n": np.array(3), "m": np.array(2**24 + 1)}
    for condition, expected in ((True, 3), (False, 2**24 + 1)):
        found = prepared.run({**feeds, "c": np.array(condition)})
        np.testing.assert_allclose(found[0][..., 0], np.fft.fft(feeds["x"][..., 0]).real, atol=1e-5)
        assert found[1] == expected


def test_slopes_of_the_last_axis_are_given_one_axis_once(openvino_ep: type[omb.Preset]) -> None:
    """Beside a layer that the provider refuses, which has every other way tried, the PRelu in float64 too; what is left then runs elsewhere."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 8]>
        g (float[2, n, k] x) => (float[2, 2, s, 1] y, float[2, t, 1] h, float[2, a, b] z)
        <float[2, 1, 3] w = {0, 2, -1, 0, 0, 1}, float[2, 1, 1] r = {1, -1}, float[2, 4, 1] h0 = {1, 2, 3, 4, 5, 6, 7, 8}, float[3] slopes = {2, 3, 5}>
        { y, h = RNN <direction = "bidirectional", hidden_size = 1> (x, w, r, "", "", h0) z = PRelu (x, slopes) }"""
    )
    with pytest.raises(omb.UnsupportedModelError, match="no node of the model runs on .*: RNN"):
        openvino_ep.prepare(made)


def test_what_a_body_reads_from_outside_for_nothing_is_left_out(openvino_ep: type[omb.Preset]) -> None:
    """A value of unknown rank cannot be handed to a Scan."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 12]> g (float[2, 1] v, float[] x) => (float[2, 1] y, float[2, 1] z) { z = Cos (v)
        y = Scan <num_scan_inputs = 1, body = b (float[1] p) => (float[1] r) { q = Dropout (x) r = Identity (p) }> (v) }"""
    )
    prepared = openvino_ep.prepare(made)
    v, x = floats(2, 1), floats(3, 2)
    np.testing.assert_array_equal(prepared.run([v, x])[0], v)


def test_what_the_cpu_provider_fails_to_run_is_not_left_to_it(openvino_ep: type[omb.Preset]) -> None:
    """Cubic interpolation of integers."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (uint8[2, 1, 5, n] x, int64[4] s, float[2] w) => (uint8[a, b, c, d] y, float[2] z) {
        z = Cos (w) y = Resize <coordinate_transformation_mode = "pytorch_half_pixel", mode = "cubic"> (x, "", "", s) }"""
    )
    x = np.arange(60, dtype=np.uint8).reshape(2, 1, 5, 6)
    sizes = np.array([2, 1, 7, 9])
    found = openvino_ep.prepare(made).run([x, sizes, floats(2)])[0]
    expected = ReferenceEvaluator(made).run(["y"], {"x": x, "s": sizes, "w": floats(2)})[0]
    assert np.abs(found.astype(int) - expected).max() <= 1


def test_what_has_a_minor_defect_is_left_to_the_cpu_provider(openvino_ep: type[omb.Preset]) -> None:
    """An LRN of unknown rank, which no rule writes out."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[2, 6, 4, 4] v, int64[k] s, float[2] a) => (float[p, q, r, t] y, float[2] b) {
        x = Reshape (v, s) y = LRN <size = 5, alpha = 0.5> (x) h = Tanh (a) b = Sigmoid (h) }"""
    )
    prepared = openvino_ep.prepare(made)
    v, a = floats(2, 6, 4, 4), floats(2)
    found = prepared.run([v, np.array([2, 6, 4, 4]), a])
    np.testing.assert_allclose(found[1], 1 / (1 + np.exp(-np.tanh(a))), rtol=1e-5)
    assert {node.op_type for node in prepared.placement() if node.provider != "CPUExecutionProvider"} >= {
        "Tanh",
        "Sigmoid",
    }


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_what_the_cpu_provider_gets_wrong_too_is_rewritten_and_left_to_it(
    openvino_ep: type[omb.Preset], op_type: str, keepdims: int
) -> None:
    """OpenVINO reads no axes whose number is known only at run time."""
    nodes = f"y = {op_type} <keepdims = {keepdims}> (x, r)"
    prepared = openvino_ep.prepare(
        model("int64[m, n] x, int64[q] r", "int64[s, t] y" if keepdims else "int64[s] y", nodes)
    )
    assert "left_to_cpu" in {change.pass_name for change in prepared.adaptations}
    x = np.array([[2**31, 5, -(2**40)], [1, -(2**31) - 1, 2**40 + 2**31]])
    reduced = np.max if op_type == "ReduceMax" else np.min
    for axis in (0, 1):
        found = prepared.run([x, np.array([axis]), floats(4)])[0]
        np.testing.assert_array_equal(found, reduced(x, axis=axis, keepdims=bool(keepdims)))


def test_a_depth_whose_shape_is_known_only_at_run_time(openvino_ep: type[omb.Preset]) -> None:
    """Behind it, what is wrong of Celu is rewritten: the provider is shown the OneHot among the nodes of that."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float16[4, 2] x, float[n] depth) => (float[4, 2, k] y) <float[2] values = {-2, 3}> {
        z = OneHot (x, depth, values) y = Celu <alpha = 0.5> (z) }"""
    )
    x = np.float16([[0, 1], [1, 1], [0, 0], [1, 0]])
    found = openvino_ep.prepare(made).run([x, np.float32([2])])[0]
    z = np.where(x[..., None] == np.arange(2), 3, -2)
    np.testing.assert_allclose(found, np.maximum(z, 0) + np.minimum(0, 0.5 * (np.exp(z / 0.5) - 1)), rtol=1e-5)


def test_the_largest_of_constants_that_all_differ_in_a_branch(openvino_ep: type[omb.Preset]) -> None:
    """Which of equal values OpenVINO takes does not matter where there are none; no node of a branch is left to the CPU provider."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 7]> g (float[1] v, float[n] x, bool which) => (float[1] y) {
        y = If (which) <
            then_branch = then () => (float[1] u) {
                c = Constant <value = float[3] {-0.5, -1.5, 0.25}> () t, i = TopK <axis = 0, k = 1> (c) unread = Concat <axis = 0> (x) u = Identity (t) },
            else_branch = other () => (float[1] w) { same = Equal (which, which) w = Identity (v) }> }"""
    )
    prepared = openvino_ep.prepare(made)
    for which in (True, False, True):
        found = prepared.run([np.float32([2]), floats(4), np.array(which)])[0]
        np.testing.assert_array_equal(found, np.float32([0.25 if which else 2]))


def test_a_node_that_reads_what_is_computed_of_constants(openvino_ep: type[omb.Preset]) -> None:
    """ONNX Runtime computed the size of that ahead, and resolved the branches before it placed them."""
    numbers = np.random.default_rng(0)
    stored = {"x": (3, 2, 3), "w": (1, 8, 3), "r": (1, 8, 2), "b": (1, 16), "p": (1, 6)}
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[1, 2, 2] h, float[2, 2] z, float s) => (float[3, 1, 2, 2] y, float[1, 1, 2, 2] u, float[1, 1] t)
        <int64[2] axes = {0, 1}> { v = Relu (x) y = LSTM <hidden_size = 2> (v, w, r, b, , h, , p) n = Neg (z) u = Unsqueeze (n, axes) t = Unsqueeze (s, axes) }"""
    )
    for name, shape in stored.items():
        held = onnx.numpy_helper.from_array(numbers.normal(size=shape).astype(np.float32), name)
        model.graph.initializer.append(held)
    given = [numbers.normal(size=shape).astype(np.float32) for shape in ((1, 2, 2), (2, 2), ())]
    right = omb.OrtCpuBackend.prepare(model).run(given)[0]
    np.testing.assert_allclose(openvino_ep.prepare(model).run(given)[0], right, rtol=1e-5, atol=1e-6)
