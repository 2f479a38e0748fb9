# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements that engines refused, gave another shape or died of: known before anything runs, and told by a run alone."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from onnx_multi_backend.errors import RunError
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.sessions.for_nothing import SessionsForNothing
from onnx_multi_backend.sessions.maker import SessionMaker

Array = np.ndarray[Any, Any]

#: What makes y of x, and the shape of y where x has the shape (n, 3, 4, 4).
FORMS: dict[str, tuple[str, tuple[int | str, ...]]] = {
    "AveragePool": ("y = AveragePool <kernel_shape = [2, 2]> (x)", ("n", 3, 3, 3)),
    "Conv": ("y = Conv (x, w)", ("n", 3, 4, 4)),
    "Einsum": ('y = Einsum <equation = "abcd,de->abce"> (x, m)', ("n", 3, 4, 4)),
    "Flatten": ("y = Flatten <axis = 2> (x)", ("3n", 16)),
    "LRN": ("y = LRN <size = 3> (x)", ("n", 3, 4, 4)),
    "LpNormalization": ("y = LpNormalization <axis = 1> (x)", ("n", 3, 4, 4)),
    "MatMul": ("y = MatMul (m, x)", ("n", 3, 4, 4)),
    "MaxPool": ("y = MaxPool <kernel_shape = [2, 2]> (x)", ("n", 3, 3, 3)),
    "MeanVarianceNormalization": (
        "p = MaxPool <kernel_shape = [2, 2]> (x) y = MeanVarianceNormalization (p)",
        ("n", 3, 3, 3),
    ),
    "PRelu": ("y = PRelu (x, slope)", ("n", 3, 4, 4)),
    "ReduceSum": ("y = ReduceSum (x, last)", ("n", 3, 4, 1)),
    "ReduceMean": ("y = ReduceMean <keepdims = 0> (x, last)", ("n", 3, 4)),
    "ReduceLogSumExp": ("y = ReduceLogSumExp (x, last)", ("n", 3, 4, 1)),
    "Split": ("y, z = Split <axis = 3, num_outputs = 2> (x)", ("n", 3, 4, 2)),
    "TopK": ("y, i = TopK <axis = 3> (x, two)", ("n", 3, 4, 2)),
}


def _model(form: str, batch: int | str) -> ModelProto:
    nodes, shape = FORMS[form]
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{batch}, 3, 4, 4] x) => (float[{", ".join("abcd"[: len(shape)])}] y)
        <float[3, 3, 1, 1] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float[3, 1, 1] slope = {{0.5, 1, 2}}, int64[1] last = {{-1}}, int64[1] two = {{2}},
        float[4, 4] m = {{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}}> {{ {nodes} }}"""
    )


def _shape(form: str, batch: int) -> tuple[int, ...]:
    sizes = {"n": batch, "3n": 3 * batch}
    return tuple(sizes[size] if isinstance(size, str) else size for size in FORMS[form][1])


def _x(batch: int) -> Array:
    return np.random.default_rng(0).uniform(size=(batch, 3, 4, 4)).astype(np.float32)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"MatMul", "Split"}))  # ONNX Runtime 1.24 refuses such runs
def test_a_batch_of_0(preset: type[omb.Preset], form: str) -> None:
    prepared = preset.prepare(_model(form, "n"), fallback="full")
    before = prepared.run(_x(2))[0]
    assert prepared.run(_x(0))[0].shape == _shape(form, 0)
    np.testing.assert_array_equal(prepared.run(_x(2))[0], before)
    assert before.shape == _shape(form, 2)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("form", FORMS)
def test_a_batch_that_is_declared_0(preset: type[omb.Preset], form: str) -> None:
    prepared = preset.prepare(_model(form, 0), fallback="full")
    assert prepared.run(_x(0))[0].shape == _shape(form, 0)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_bound_buffers_and_several_batches(preset: type[omb.Preset]) -> None:
    prepared = preset.prepare(_model("MaxPool", "n"), fallback="full")
    bound = prepared.bind(_x(0))
    assert bound.run()[0].shape == (0, 3, 3, 3)
    batches = [0, 2] * 30
    assert [y.shape[0] for (y,) in prepared.run_many(_x(batch) for batch in batches)] == batches
    prepared.close()
    with pytest.raises(omb.RunError, match="was closed"):
        bound.run()


def _made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked for inputs without elements from now on."""
    asked = []
    asking = SessionMaker.for_nothing

    def counting(*given: Any) -> Any:
        asked.append(asking(*given))
        return asked[-1]

    monkeypatch.setattr(SessionMaker, "for_nothing", counting)
    return asked


def test_the_model_is_looked_at_once_for_the_same_empty_inputs(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty cache of keys beside a longer or shorter prompt is such an input."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[1, p, 4] past, float[1, n, 4] x) => (float[1, p, 4] y, float[1, 4, n] z) {
        y = Concat <axis = 1> (past, x) t = Transpose <perm = [0, 2, 1]> (x) z = AveragePool <kernel_shape = [1]> (t) }"""
    )
    asked, prepared = _made(monkeypatch), openvino.prepare(model)
    for length in (2, 3, 4):
        x = np.ones((1, length, 4), np.float32)
        np.testing.assert_array_equal(prepared.run({"past": np.ones((1, 0, 4), np.float32), "x": x})[0], x)
    assert asked == [None]


def test_models_without_such_operators_are_not_looked_at(
    engine: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[1, p, 4] past, float[1, n, 4] x) => (float[1, q, 4] y)
        <float[4, 4] w = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}> { k = MatMul (past, w) y = Concat <axis = 1> (k, x) }"""
    )
    asked, prepared = _made(monkeypatch), engine.prepare(model)
    prepared.run({"past": np.ones((1, 0, 4), np.float32), "x": np.ones((1, 2, 4), np.float32)})
    assert not asked


#: Beside a pool of no images: what has elements though the model declares that it has none, or what it declares of others would say so.
BESIDE = {
    "a symbol": "float[n, 3] w",
    "a size": "float[0, 3] w",
}


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("declared", BESIDE)
@pytest.mark.parametrize("batch", ["n", 0])
def test_what_is_declared_of_results_is_not_believed(preset: type[omb.Preset], declared: str, batch: int | str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{batch}, 1, 4, 4] x, float[2, 3] z) => (float[a, b, c, d] y, {BESIDE[declared]})
        {{ y = MaxPool <kernel_shape = [2, 2]> (x) w = Neg (z) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    y, w = prepared.run([np.ones((0, 1, 4, 4), np.float32), np.ones((2, 3), np.float32)])
    assert (y.shape, w.shape) == ((0, 1, 3, 3), (2, 3))


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_inputs_of_one_symbol_that_differ(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[n, 1, 4, 4] x, float[n, 3] z) => (float[a, b, c, d] y, float[e, f] w)
        { y = MaxPool <kernel_shape = [2, 2]> (x) w = Neg (z) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    for size in (0, 2, 3):
        y, w = prepared.run([np.ones((0, 1, 4, 4), np.float32), np.ones((size, 3), np.float32)])
        assert (y.shape, w.shape) == ((0, 1, 3, 3), (size, 3))


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_another_model_in_the_file_is_not_run(preset: type[omb.Preset], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(_model("Flatten", "n"), path)
    prepared = preset.prepare(path, fallback="full")
    onnx.save(_model("ReduceSum", "n"), path)
    if preset.name == "OrtCpu":
        assert prepared.run(_x(0))[0].shape == _shape("Flatten", 0)
        return
    with pytest.raises(omb.RunError, match="once more"):
        prepared.run(_x(0))


def test_a_run_of_which_the_provider_takes_nothing(openvino_ep: type[omb.Preset]) -> None:
    """What is left is another provider's: it gets the model for these shapes too."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[n, 3, 4, 4] x, float[5] z) => (float[a, b, c, d] y, float[e] only) {
        t = Constant <value_ints = [-1]> () u = Neg (x) v = Exp (u) w = Sin (v) y = ReduceSum (w, t) only = Unique (z) }"""
    )
    prepared, z = openvino_ep.prepare(model), np.float32([1, 2, 1, 2, 3])
    for batch in (2, 0, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", omb.FallbackWarning)
            y, only = prepared.run([_x(batch), z])
        assert y.shape == (batch, 3, 4, 1)
        np.testing.assert_array_equal(only, [1, 2, 3])


#: What makes the shape (2, 0, 3) or (0, 3) of constants, or of z, which has the shape (2, 0).
SHAPES = {
    "constant": ("", "s"),
    "computed": ("c = Concat <axis = 0> (zero, three)", "c"),
    "of a shape": ("h = Shape (z) c = Concat <axis = 0> (h, three)", "c"),
    "of Constants": ("c = Constant <value_ints = [0, 3]> ()", "c"),
    "of a difference": ("d = Sub (three, three) c = Concat <axis = 0> (d, three)", "c"),
}


@pytest.mark.parametrize("sizes", ["2, 1, 3", "n, 1, 3", "n, m, 3"])
@pytest.mark.parametrize("shape", SHAPES)
def test_expanding_to_nothing_between_nodes(preset: type[omb.Preset], sizes: str, shape: str) -> None:
    """ONNX Runtime and OpenVINO left the Expand out."""
    before, name = SHAPES[shape]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{sizes}] x, float[2, 0] z) => (float[a, b, c] y)
        <int64[3] s = {{1, 0, 3}}, int64[1] zero = {{0}}, int64[1] three = {{3}}> {{ v = Abs (x) {before} e = Expand (v, {name}) y = Neg (e) }}"""
    )
    given = {"x": np.ones((2, 1, 3), np.float32), "z": np.ones((2, 0), np.float32)}
    assert preset.prepare(model, fallback="full").run(given)[0].shape == (2, 0, 3)


def test_expanding_to_what_a_cast_makes_nothing(ort_cpu: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[1, 3] x) => (float[a, b] y) {
        v = Abs (x) f = Constant <value_floats = [0.5, 3.0]> () s = Cast <to = 7> (f) e = Expand (v, s) y = Neg (e) }"""
    )
    assert ort_cpu.prepare(model).run(np.ones((1, 3), np.float32))[0].shape == (0, 3)


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("sizes", ["2, 1", "n, 1", "n, m"])
def test_arithmetic_with_a_constant_without_elements(preset: type[omb.Preset], operator: str, sizes: str) -> None:
    """ONNX Runtime 1.24 left it out."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{sizes}] x) => (float[a, b] y)
        <float[2, 0] k = {{}}> {{ v = Abs (x) w = {operator} (v, k) y = Neg (w) }}"""
    )
    assert preset.prepare(model, fallback="full").run(np.ones((2, 1), np.float32))[0].shape == (2, 0)


@pytest.mark.parametrize("sizes", ["2, 0", "n, m"])
@pytest.mark.parametrize("wanted", [(0,), (0, 2), (2, 3, 0)], ids=str)
def test_reshaping_nothing_as_another_value(preset: type[omb.Preset], sizes: str, wanted: tuple[int, ...]) -> None:
    """OpenVINO took a 0 of a Shape for a size of the input: memory that was never written."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{sizes}] x, float[{", ".join(map(str, wanted))}] z) =>
        (float[{", ".join("abc"[: len(wanted)])}] y) {{ v = Abs (x) s = Shape (z) w = Reshape <allowzero = 1> (v, s) y = Neg (w) }}"""
    )
    given = {"x": np.ones((2, 0), np.float32), "z": np.ones(wanted, np.float32)}
    assert preset.prepare(model, fallback="full").run(given)[0].shape == wanted


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("rows", ["n", 0])
@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "int8", "uint8"])
@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceMin"])
def test_extremes_of_no_integers(preset: type[omb.Preset], operator: str, kind: str, rows: int | str) -> None:
    """The least of the type for the largest, the most of it for the smallest."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g ({kind}[{rows}, 3] x) => ({kind}[a, b] y) {{ y = {operator} <axes = [0]> (x) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    limits = np.iinfo(kind)
    limit = limits.min if operator == "ReduceMax" else limits.max
    if preset is omb.OpenvinoBackend and not -(2**31) <= limit < 2**31:
        pytest.skip("OpenVINO has no such integer, see docs/wrong-forms.md")
    for n in (0,) if rows == 0 else (2, 0, 3):
        expected = np.full((1, 3), 7 if n else limit, kind)
        np.testing.assert_array_equal(prepared.run(np.full((n, 3), 7, kind))[0], expected, strict=True)


GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize(("steps", "batch"), [(3, 0), (0, 3), (0, 0)])
@pytest.mark.parametrize("operator", GATES)
def test_recurrent_layers_of_nothing(
    preset: type[omb.Preset], operator: str, steps: int, batch: int, declared: bool
) -> None:
    """ONNX Runtime ends the process over a GRU of nothing, and an LSTM without a batch; OpenVINO leaves states of no steps unwritten."""
    gates, sizes = GATES[operator], f"{steps}, {batch}" if declared else "s, n"
    numbers = ", ".join(["0.5"] * 4 * gates)
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{sizes}, 2] x, float[1, {batch if declared else "n"}, 2] h)
        => (float[s, 1, n, 2] y, float[1, n, 2] z) <float[1, {2 * gates}, 2] w = {{{numbers}}}, float[1, {2 * gates}, 2] r = {{{numbers}}}> {{
        y, z = {operator} <hidden_size = 2> (x, w, r, , , h) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    state = 1 + np.arange(2 * batch, dtype=np.float32).reshape(1, batch, 2)
    y, z = prepared.run([np.ones((steps, batch, 2), np.float32), state])
    assert y.shape == (steps, 1, batch, 2)
    assert z.shape == state.shape
    np.testing.assert_array_equal(z, 0 * state)  # as ONNX Runtime's of a sequence of length 0


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning", "ignore::onnx_multi_backend.PrecisionWarning")
@pytest.mark.parametrize("batch", ["n", 0])
def test_a_quantized_recurrent_layer_of_no_batch(preset: type[omb.Preset], batch: int | str) -> None:
    """It ended the process of ONNX Runtime, whose quantizer makes it of each LSTM."""
    numbers, zeros = ", ".join(["3"] * 16), "float[1] s = {0.1}, int8[1] z = {0}"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g (float[t, {batch}, 2] x)
        => (float[t, 1, n, 2] y, float[1, n, 2] h) <int8[1, 2, 8] w = {{{numbers}}}, int8[1, 2, 8] r = {{{numbers}}}, {zeros}> {{
        e = Relu (x) y, h = com.microsoft.DynamicQuantizeLSTM <hidden_size = 2> (e, w, r, , , , , , s, z, s, z) }}"""
    )
    if batch == 0 and (preset.name != "OrtCpu" or not applies({"onnxruntime": ">=1.32"})):
        with pytest.raises(omb.UnsupportedModelError, match="process"):
            preset.prepare(model, fallback="full")
        return
    prepared = preset.prepare(model, fallback="full")
    for size in (0,) if batch == 0 else (2, 0, 1):
        y, h = prepared.run([np.ones((3, size, 2), np.float32)])
        assert (y.shape, h.shape) == ((3, 1, size, 2), (1, size, 2))


#: Products that add up nothing, the type of x and w and the shapes of these and of the result.
SUMS: dict[str, tuple[str, str, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "MatMulInteger": ("y = MatMulInteger (x, w)", "int32", (3, 0), (0, 2), (3, 2)),
    "MatMulInteger with zero points": ("y = MatMulInteger (x, w, z, z)", "int32", (3, 0), (0, 2), (3, 2)),
    "MatMulInteger of stacks": ("y = MatMulInteger (x, w)", "int32", (2, 3, 0), (2, 0, 2), (2, 3, 2)),
    "MatMulInteger by a vector": ("y = MatMulInteger (x, w)", "int32", (3, 0), (0,), (3,)),
    "QLinearMatMul by a vector": ("y = QLinearMatMul (x, s, z, w, s, z, s, z)", "uint8", (3, 0), (0,), (3,)),
    "QLinearMatMul": ("y = QLinearMatMul (x, s, z, w, s, z, s, z)", "uint8", (3, 0), (0, 2), (3, 2)),
    "ConvInteger": ("y = ConvInteger (x, w)", "int32", (1, 0, 4, 4), (2, 0, 2, 2), (1, 2, 3, 3)),
    "QLinearConv": ("y = QLinearConv (x, s, z, w, s, z, s, z)", "uint8", (1, 0, 4, 4), (2, 0, 2, 2), (1, 2, 3, 3)),
}
#: Those that no rule writes in other operators.
_REFUSED_SUMS = ("QLinearMatMul", "QLinearMatMul by a vector", "ConvInteger", "QLinearConv")


@pytest.mark.parametrize(
    "around",
    [
        "y = If <then_branch = a () => (int32[b, c] p) { m = MatMulInteger (x, w) p = Add (m, o) }, else_branch = e () => (int32[b, c] q) { q = Identity (o) }> (t)",
        "y = Loop <body = b (int64 i, bool g, int32[b, c] s) => (bool h, int32[b, c] r) { h = Identity (g) p = MatMulInteger (x, w) r = Add (p, s) }> (n, , o)",
    ],
    ids=["If", "Loop"],
)
def test_sums_of_nothing_in_branches_and_loops(ort_cpu: type[omb.Preset], around: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 16]> g (uint8[b, a] x, uint8[a, c] w, bool t, int64 n, int32[b, c] o) => (int32[b, c] y) {{ {around} }}"""
    )
    prepared = ort_cpu.prepare(model)
    rest = [np.array(True), np.array(1), np.zeros((30, 20), np.int32)]
    for _ in range(3):
        found = prepared.run([np.ones((30, 5), np.uint8), np.ones((5, 20), np.uint8), *rest])[0]
        np.testing.assert_array_equal(found, np.full((30, 20), 5, np.int32))
        found = prepared.run([np.ones((30, 0), np.uint8), np.ones((0, 20), np.uint8), *rest])[0]
        np.testing.assert_array_equal(found, np.zeros((30, 20), np.int32))


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("form", SUMS)
def test_sums_of_nothing_that_a_run_alone_tells(preset: type[omb.Preset], form: str) -> None:
    """ONNX Runtime's kernels of integers left the result unwritten."""
    nodes, kind, *shapes = SUMS[form]
    x, w, y = (", ".join("abcdefghijkl"[4 * i :][: len(shape)]) for i, shape in enumerate(shapes))
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (uint8[{x}] x, uint8[{w}] w) => ({kind}[{y}] y)
        <float s = {{0.5}}, uint8 z = {{7}}> {{ {nodes} }}"""
    )
    try:
        prepared = preset.prepare(model, fallback="full")
    except omb.UnsupportedModelError:
        assert preset is not omb.OrtCpuBackend
        return
    full = [np.full([size or 2 for size in shape], 3, np.uint8) for shape in shapes[:2]]
    before = prepared.run(full)[0]
    nothing = [np.ones(shape, np.uint8) for shape in shapes[:2]]
    if preset is omb.OrtCpuBackend and form in _REFUSED_SUMS:
        with pytest.raises(RunError, match="without elements"):
            prepared.run(nothing)
    else:
        try:
            found = prepared.run(nothing)[0]
        except RunError:
            assert form in _REFUSED_SUMS
        else:
            np.testing.assert_array_equal(found, np.full(shapes[2], 7 if kind == "uint8" else 0, kind), strict=True)
    np.testing.assert_array_equal(prepared.run(full)[0], before)


#: What is computed of padding alone, and its shape.
PADDED = {
    "AveragePool": "y = AveragePool <kernel_shape = [2, 2], pads = [1, 1, 1, 1], count_include_pad = 1> (x)",
    "LpPool": "y = LpPool <kernel_shape = [2, 2], pads = [1, 1, 1, 1]> (x)",
    "Conv": "y = Conv <pads = [1, 1, 1, 1]> (x, w)",
    "GridSample": "y = GridSample (x, g)",
}


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("height", [0, "h"])
@pytest.mark.parametrize("form", PADDED)
def test_images_without_pixels(preset: type[omb.Preset], form: str, height: int | str) -> None:
    """OpenVINO left the result unwritten."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 20]> g (float[1, 2, {height}, 4] x, float[1, 1, 5, 2] g) => (float[a, b, c, d] y)
        <float[2, 2, 2, 2] w = {{{", ".join(["2"] * 16)}}}> {{ {PADDED[form]} }}"""
    )
    try:
        prepared = preset.prepare(model, fallback="full")
        found = prepared.run([np.ones((1, 2, 0, 4), np.float32), np.zeros((1, 1, 5, 2), np.float32)])[0]
    except (omb.UnsupportedModelError, omb.RunError):
        return
    np.testing.assert_array_equal(found, np.zeros((1, 2, 1, 5), np.float32), strict=True)


#: What ONNX Runtime computes of nothing, and its inputs' shapes; whole numbers are int64.
LEFT_ALONE = {
    "a detector without boxes": (
        """(float[n, 4] boxes, float[n] s) => (float[k, 4] b, float[k] v) <int64[1] most = {100}> {
        count = Shape (s) k = Min (count, most) v, i = TopK (s, k) b = Gather (boxes, i) }""",
        [(0, 4), (0,)],
        [(0, 4), (0,)],
    ),
    "boxes that are chosen": (
        """(float[1, n, 4] boxes, float[1, 2, n] s) => (float[k] v) <int64 most = {3}> {
        i = NonMaxSuppression (boxes, s, most) v = GatherND (s, i) }""",
        [(1, 0, 4), (1, 2, 0)],
        [(0,)],
    ),
    "places of no numbers": (
        "(float[n, 3] x) => (float[k] v) { p = NonZero (x) i = Transpose (p) v = GatherND (x, i) }",
        [(0, 3)],
        [(0,)],
    ),
    "Unique of nothing": ("(float[n] x) => (float[k] y) { y = Unique (x) }", [(0,)], [(0,)]),
    "Unique along an axis of nothing": (
        "(float[n, 3] x) => (float[k, l] y) { y = Unique <axis = 0> (x) }",
        [(0, 3)],
        [(0, 3)],
    ),
    "a branch for nothing": (
        """(float[n] s, float[m, k] x) => (float[l] a, float[o, p] b) <int64[1] last = {-1}, int64 none = {0}, int64[1] first = {0}> {
        b = ReduceSum (x, last) count = Shape (s) one = Squeeze (count, first) some = Greater (one, none)
        a = If (some) <then_branch = t () => (float[q] c) { c = Unique (s) }, else_branch = e () => (float[r] d) { d = Identity (s) }> }""",
        [(0,), (0, 3)],
        [(0,), (0, 1)],
    ),
}


@pytest.mark.parametrize("form", LEFT_ALONE)
def test_what_onnx_runtime_computes_of_nothing(ort_cpu: type[omb.Preset], form: str) -> None:
    text, shapes, made = LEFT_ALONE[form]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    results = ort_cpu.prepare(model).run([np.ones(shape, np.float32) for shape in shapes])
    assert [result.shape for result in results] == made


def test_attention_scores_of_nothing(ort_cpu: type[omb.Preset]) -> None:
    """ONNX Runtime ends the process over them."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[b, h, s, d] q, float[b, h, t, d] k) => (float[b, h, s, t] y) {
        y = Einsum <equation = "bhsd,bhtd->bhst"> (q, k) }"""
    )
    prepared = ort_cpu.prepare(model)
    for batch in (0, 2):
        feeds = [np.ones((batch, 2, size, 4), np.float32) for size in (3, 5)]
        assert prepared.run(feeds)[0].shape == (batch, 2, 3, 5)
    with pytest.raises(RunError, match="would end the engine's process"):
        prepared.run([np.ones((1, 2, size, 0), np.float32) for size in (3, 5)])


DEADLY = {
    "Unique of rows of nothing": ("(float[n, m] x) => (float[k, l] y) { y = Unique <axis = 0> (x) }", [(3, 0)]),
    "GRU without features": (
        """(float[s, 2, f] x, float[1, 6, f] w) => (float[a, b, c, d] y) <float[1, 6, 2] r = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6}> {
        y = GRU <hidden_size = 2> (x, w, r) }""",
        [(3, 2, 0), (1, 6, 0)],
    ),
    "ConvTranspose of flat volumes": (
        "(float[n, 1, d, h, w] x, float[1, 1, 3, 3, 3] k) => (float[o, p, q, r, s] y) { y = ConvTranspose (x, k) }",
        [(1, 1, 0, 4, 4), (1, 1, 3, 3, 3)],
    ),
    "STFT without a window": (
        "(float[n, 16, 1] x, int64 step, float[w] k) => (float[p, q, r, s] y) { y = STFT (x, step, k) }",
        [(1, 16, 1), (), (0,)],
    ),
}


@pytest.mark.parametrize("form", DEADLY)
def test_what_would_end_onnx_runtimes_process(ort_cpu: type[omb.Preset], form: str) -> None:
    text, shapes = DEADLY[form]
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    prepared = ort_cpu.prepare(model)
    feeds = [np.int64(8) if shape == () else np.ones(shape, np.float32) for shape in shapes]
    for _ in range(2):
        with pytest.raises(RunError, match="would end the engine's process"):
            prepared.run(feeds)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("length", ["", ", l"])
def test_a_signal_of_nothing(preset: type[omb.Preset], length: str) -> None:
    """OpenVINO ends the process over it, and ONNX Runtime before 1.32."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[b, n, 1] x) => (float[b, m, 2] y) <int64 l = {{4}}> {{
        y = DFT <axis = 1> (x{length}) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    assert prepared.run(np.ones((0, 4, 1), np.float32))[0].shape == (0, 4, 2)
    try:
        y = prepared.run(np.ones((2, 0, 1), np.float32))[0]
    except RunError:
        assert length, "neither engine pads an empty signal"
    else:
        assert y.shape == (2, 0, 2)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_attention_of_nothing(preset: type[omb.Preset]) -> None:
    """ONNX Runtime before 1.32 ends the process without heads, 1.32 refuses an empty batch."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 23]> g (float[b, h, s, 8] q, float[b, h, t, 8] k, float[b, h, t, 8] v)
        => (float[b, h, s, e] y) { y = Attention (q, k, v) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    for batch, heads, steps in ((2, 0, 4), (0, 3, 4), (2, 3, 0), (2, 3, 4)):
        feeds = [np.ones((batch, heads, size, 8), np.float32) for size in (steps, 6, 6)]
        assert prepared.run(feeds)[0].shape == (batch, heads, steps, 8)


@pytest.mark.parametrize("step", ["", ", int64 step"])
def test_signals_of_an_empty_batch(ort_cpu: type[omb.Preset], step: str) -> None:
    """onnx infers 8 frequencies, as if `onesided` were 0 by default."""
    constant = "" if step else ", int64 step = {8}"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[n, 16, 1] x{step}) => (float[p, q, r, s] y)
        <float[8] k = {{1, 2, 3, 4, 4, 3, 2, 1}}{constant}> {{ y = STFT (x, step, k) }}"""
    )
    prepared = ort_cpu.prepare(model)
    for batch in (0, 1):
        feeds = [np.ones((batch, 16, 1), np.float32), *([np.array(8)] if step else [])]
        assert prepared.run(feeds)[0].shape == (batch, 2, 5, 2)


def test_indices_of_nothing(preset: type[omb.Preset]) -> None:
    """ONNX Runtime 1.24 ends the process over them."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (int64[n] x) => (float[n, 3] y) <int64 d = {3}, float[2] v = {0, 1}> {
        y = OneHot (x, d, v) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    for count in (0, 2, 0):
        assert prepared.run(np.zeros(count, np.int64))[0].shape == (count, 3)


def test_what_would_end_the_process_is_refused() -> None:
    class Refusing:
        asked = 0

        def for_nothing(self, target: Any, shapes: Any) -> Any:
            self.asked += 1
            raise omb.UnsupportedModelError("GRU would end the engine's process")

    refusing = Refusing()
    sessions = SessionsForNothing(refusing, None)  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(RunError, match="are refused: GRU would end the engine's process"):
            sessions.get({"x": (0, 3)})
    assert refusing.asked == 1


#: What chooses rows of x, none where all are 0.
CHOSEN = {
    "NonZero, Gather": "r = ReduceSum <keepdims = 0> (x, one) n = NonZero (r) i = Squeeze (n, zero) t = Gather <axis = 0> (x, i)",
    "Compress": "r = ReduceSum <keepdims = 0> (x, one) c = Cast <to = 9> (r) t = Compress <axis = 0> (x, c)",
    "Slice": "m = ReduceMax <keepdims = 0> (x) e = Cast <to = 7> (m) f = Unsqueeze (e, zero) t = Slice (x, zero, f, zero)",
}


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("form", CHOSEN)
def test_the_largest_of_no_rows(preset: type[omb.Preset], form: str) -> None:
    """OrtOpenvino's process ended."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[b, 3] x) => (float[n, 2] y)
        <int64[1] one = {{1}}, int64[1] zero = {{0}}, int64[1] k = {{2}}> {{ {CHOSEN[form]} y, j = TopK (t, k) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    for value, rows in ((1, 2 if form != "Slice" else 1), (0, 0), (2, 2)):
        x = np.full((2, 3), value, np.float32)
        assert prepared.run([x])[0].tolist() == [[value] * 2] * rows


#: What is computed of z, which a Slice of x empties along an axis: the sizes of x, the axis, and the shape of y then.
SLICED: dict[str, tuple[str, tuple[int, ...], int, tuple[int, ...]]] = {
    "Einsum": ('y = Einsum <equation = "abcd,abed->abce"> (z, z)', (2, 3, 4, 4), 1, (2, 0, 4, 4)),
    "Einsum that sums nothing": ('y = Einsum <equation = "abcd,abed"> (z, z)', (2, 3, 4, 4), 3, (4, 4)),
    "GRU": ("y, h = GRU <hidden_size = 2> (z, wg, rg)", (3, 2, 4), 1, (3, 1, 0, 2)),
    "GRU of no steps": ("y, h = GRU <hidden_size = 2> (z, wg, rg)", (3, 2, 4), 0, (0, 1, 2, 2)),
    "InstanceNormalization": ("y = InstanceNormalization (z, s, s)", (2, 3, 4), 2, (2, 3, 0)),
    "LRN": ("y = LRN <size = 3> (z)", (2, 3, 4, 4), 0, (0, 3, 4, 4)),
    "LpNormalization": ("y = LpNormalization (z)", (2, 3), 0, (0, 3)),
    "OneHot": ("u = Cast <to = 7> (z) y = OneHot <axis = 1> (u, k, pair)", (2, 3), 0, (0, 1, 3)),
    "LSTM": ("y, , c = LSTM <hidden_size = 2> (z, wl, rl)", (3, 2, 4), 1, (3, 1, 0, 2)),
    "LSTM whose batch comes first": (
        "y, , c = LSTM <hidden_size = 2, layout = 1> (z, wl, rl)",
        (2, 3, 4),
        0,
        (0, 3, 1, 2),
    ),
    "TopK": ("y, i = TopK <axis = 1> (z, k)", (3, 4, 2), 0, (0, 1, 2)),
    "Unique": ("y, , , c = Unique (z)", (3, 2), 0, (0,)),
    "Unique along an axis": ("y = Unique <axis = 1> (z)", (3, 2), 1, (3, 0)),
    "Unique of what has no elements": ("y = Unique <axis = 0> (z)", (3, 2), 1, (1, 0)),
}


def _sliced(form: str) -> ModelProto:
    nodes, sizes, axis, _ = SLICED[form]
    letters = ", ".join("abcd"[: len(sizes)])
    weights = ", ".join(
        f"float[1, {rows}, {columns}] {name} = {{{', '.join(['0.5'] * rows * columns)}}}"
        for name, rows, columns in (("wg", 6, 4), ("rg", 6, 2), ("wl", 8, 4), ("rl", 8, 2))
    )
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[{letters}] x, int64[1] end) => (float[{", ".join("efgh"[: len(SLICED[form][3])])}] y)
        <{weights}, float[3] s = {{1, 2, 3}}, float[2] pair = {{0, 1}}, int64[1] k = {{1}}, int64[1] zero = {{0}}, int64[1] axis = {{{axis}}}> {{
        z = Slice (x, zero, end, axis) {nodes} }}"""
    )


@pytest.mark.parametrize("form", SLICED)
def test_what_a_slice_empties_in_a_run(engine: type[omb.Preset], form: str) -> None:
    """ONNX Runtime's process ended; OpenVINO's Unique gave the results of the run before."""
    _, sizes, axis, shape = SLICED[form]
    prepared = engine.prepare(_sliced(form))
    x = np.random.default_rng(0).uniform(size=sizes).astype(np.float32)
    full, nothing = np.array([sizes[axis]]), np.array([0])
    before = prepared.run([x, full])[0]
    np.testing.assert_array_equal(prepared.run([x, nothing])[0], np.zeros(shape, np.float32), strict=True)
    np.testing.assert_array_equal(prepared.run([x, full])[0], before)


#: An LSTM of what a Slice empties: in an older opset, in and behind a loop, behind a branch, and of what has the sizes of x.
LAYERS = {
    "an older opset": (11, "s = Slice (x, zero, end, one) y, h, c = LSTM <hidden_size = 2> (s, w, r)"),
    "the state of a loop": (
        17,
        """n = Unsqueeze (x, one) v, y = Loop <body = b (int64 i, bool g, float[a, e, d] z, float[q, s, t, u] o) => (bool f, float[p, k, l] m, float[h, j, c, r] y) {
        f = Identity (g) y, h, c = LSTM <hidden_size = 2> (z, w, r) m = Slice (z, zero, end, one) }> (two, , x, n)""",
    ),
    "behind a branch": (
        17,
        """t = Greater (end, zero) s = If (t) <then_branch = b () => (float[p, q, d] u) { u = Identity (x) }, else_branch = e () => (float[j, k, l] v) {
        v = Slice (x, zero, end, one) }> y, h, c = LSTM <hidden_size = 2> (s, w, r)""",
    ),
    "zeros of its sizes": (
        17,
        """n = Shape (x) o = ConstantOfShape (n) s = Slice (o, zero, end, one) y, h, c = LSTM <hidden_size = 2> (s, w, r)""",
    ),
}


@pytest.mark.parametrize("form", LAYERS)
def test_layers_of_what_a_slice_empties_elsewhere(ort_cpu: type[omb.Preset], form: str) -> None:
    opset, nodes = LAYERS[form]
    numbers = {columns: ", ".join(["0.5"] * 8 * columns) for columns in (4, 2)}
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": {opset}]> g (float[a, b, 4] x, int64[1] end) => (float[e, f, g, h] y)
        <float[1, 8, 4] w = {{{numbers[4]}}}, float[1, 8, 2] r = {{{numbers[2]}}}, int64[1] zero = {{0}}, int64[1] one = {{1}}, int64 two = {{2}}, int64 last = {{-1}}> {{
        {nodes} }}"""
    )
    prepared = ort_cpu.prepare(model)
    x = np.random.default_rng(0).uniform(size=(3, 2, 4)).astype(np.float32)
    before = prepared.run([x, np.array([2])])[0]
    assert prepared.run([x, np.array([0])])[0].shape == (3, 1, 0, 2)
    np.testing.assert_array_equal(prepared.run([x, np.array([2])])[0], before)


def test_more_candidates_than_there_are_are_refused(ort_cpu: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[n] x, int64[1] end) => (float[m] y) <int64[1] zero = {0}, int64[1] two = {2}> {
        s = Slice (x, zero, end) y, i = TopK (s, two) }"""
    )
    prepared = ort_cpu.prepare(model)
    x = np.arange(4, dtype=np.float32)
    assert prepared.run([x, np.array([3])])[0].tolist() == [2, 1]
    with pytest.raises(RunError):
        prepared.run([x, np.array([0])])


def test_what_only_inputs_could_empty_is_not_guarded(ort_cpu: type[omb.Preset]) -> None:
    model = _sliced("GRU")
    model.graph.node[0].CopyFrom(onnx.helper.make_node("Identity", ["x"], ["z"]))
    assert not ort_cpu.prepare(model).adaptations
    model = _sliced("InstanceNormalization")
    model.graph.initializer[-1].CopyFrom(onnx.numpy_helper.from_array(np.array([0]), "axis"))
    model.graph.node[0].input[2] = "k"
    assert not ort_cpu.prepare(model).adaptations  # the batch alone is cut


def test_features_of_no_rows(ort_cpu: type[omb.Preset]) -> None:
    """A FeatureVectorizer ended the process."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "ai.onnx.ml": 3]> g (float[n, 3] x, float[n, 1] y) => (float[n, 4] z) {
        z = ai.onnx.ml.FeatureVectorizer <inputdimensions = [3, 1]> (x, y) }"""
    )
    prepared = ort_cpu.prepare(model)
    for rows in (2, 0):
        x = np.arange(3.0 * rows, dtype=np.float32).reshape(rows, 3)
        found = prepared.run([x, -x[:, :1]])[0]
        np.testing.assert_array_equal(found, np.concatenate([x, -x[:, :1]], axis=1), strict=True)


def test_choosing_by_an_empty_condition(preset: type[omb.Preset]) -> None:
    """A condition that is declared empty ended OpenVINO's process."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[4] x, bool[0] c) => (float[m] y) { v = Abs (x) w = Compress (v, c) y = Neg (w) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    assert prepared.run([np.ones(4, np.float32), np.zeros(0, bool)])[0].shape == (0,)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_regions_of_no_pixels(preset: type[omb.Preset]) -> None:
    """Engines gave memory that was never written, or other memory."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[1, 3, 8, w] x, float[k, 4] r, int64[k] b) => (float[k, 3, 2, 2] y) {
        y = RoiAlign <output_height = 2, output_width = 2, sampling_ratio = 2> (x, r, b) }"""
    )
    prepared = preset.prepare(model, fallback="full")
    boxes, places = np.array([[1, 1, 3, 3]], np.float32), np.zeros(1, np.int64)
    before = prepared.run([np.ones((1, 3, 8, 8), np.float32), boxes, places])[0]
    with pytest.raises(RunError, match="without elements"):
        prepared.run([np.ones((1, 3, 8, 0), np.float32), boxes, places])
    np.testing.assert_array_equal(prepared.run([np.ones((1, 3, 8, 8), np.float32), boxes, places])[0], before)


def test_an_empty_input_that_is_passed_on(engine: type[omb.Preset]) -> None:
    """What has no elements was not known where an input is a result too: the process ended."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[n, 5, 2, 3] x) => (float[n, 2, 5, 5] y, float[n, 5, 2, 3] x) {
        y = Einsum <equation = "bqhd,bkhd->bhqk"> (x, x) }"""
    )
    prepared = engine.prepare(model)
    for n in (2, 0):
        y, x = prepared.run([np.ones((n, 5, 2, 3), np.float32)])
        np.testing.assert_array_equal(y, np.full((n, 2, 5, 5), 3, np.float32), strict=True)
        assert x.shape == (n, 5, 2, 3)


#: What OpenVINO dies of while it computes constants without elements, where a run has no rows: what is inferred does not tell all sizes.
COMPUTED_AHEAD = {
    "Expand": (
        """(float[n, 12, 5] x) => (int64[a, b, c] y) <int64[1] four = {4}, int64[1] two = {2}, int64[3] e = {1, 1, 5}> {
        s = Sigmoid (x) r = ReduceMax <axes = [2], keepdims = 0> (s) k = Identity (four) v, i = TopK <axis = 1> (r, k) u = Unsqueeze (i, two)
        y = Expand (u, e) }""",
        (12, 5),
        np.float32,
        (0, 4, 5),
    ),
    "ReduceSum": (
        """(int32[n, 4, 3] x) => (int32[a, b] y, int32[1, 4, 3] z) <int64[1] two = {2}, int64[1] last = {-1}, int32 three = {3}> {
        u = Unsqueeze (two, last) a = Squeeze (u, last) y = ReduceSum <keepdims = 0> (x, a) r = ReduceMin <axes = [0]> (x) z = Add (r, three) }""",
        (4, 3),
        np.int32,
        (0, 4),
    ),
}


@pytest.mark.parametrize("form", COMPUTED_AHEAD)
def test_what_is_computed_ahead_of_no_rows(engine: type[omb.Preset], form: str) -> None:
    text, sizes, kind, shape = COMPUTED_AHEAD[form]
    prepared = engine.prepare(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 13]> g {text}'))
    before = prepared.run([np.ones((2, *sizes), kind)])[0]
    try:
        assert prepared.run([np.ones((0, *sizes), kind)])[0].shape == shape
    except RunError:  # OpenVINO's Expand of known sizes, ONNX Runtime's TopK before 1.32
        assert form == "Expand"
    np.testing.assert_array_equal(prepared.run([np.ones((2, *sizes), kind)])[0], before)


#: What OpenVINO died of while it computed constants without elements, and the shape of the result.
OF_CONSTANTS = {
    "Tile of a Slice": (
        "<float[2, 2] d = {1, 2, 3, 4}, int64[1] s = {0}, int64[2] r = {2, 3}> { t = Slice (d, s, s) y = Tile (t, r) }",
        (0, 6),
    ),
    "Tile of a ConstantOfShape": (
        "<int64[2] h = {0, 2}, int64[2] r = {2, 3}> { t = ConstantOfShape (h) y = Tile (t, r) }",
        (0, 6),
    ),
    "Trilu": (
        "<float[2, 2] d = {1, 2, 3, 4}, int64[1] s = {1}, int64[1] a = {1}> { t = Slice (d, s, s, a) y = Trilu <upper = 0> (t) }",
        (2, 0),
    ),
    "Expand": (
        """<float[1, 3] d = {1, 2, 3}, int64[1] s = {1}, int64[1] a = {1}, int64[1] z = {0}, int64[3] r = {3, 3, 0}> {
        e = Identity (s) t = Slice (d, s, e, a) u = Unsqueeze (t, z) y = Expand (u, r) }""",
        (3, 3, 0),
    ),
}


@pytest.mark.parametrize("form", OF_CONSTANTS)
def test_constants_that_are_computed_without_elements(engine: type[omb.Preset], form: str) -> None:
    text, shape = OF_CONSTANTS[form]
    axes = ", ".join("abc"[: len(shape)])
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g () => (float[{axes}] y) {text}')
    assert engine.prepare(model).run([])[0].shape == shape


def test_gathering_by_no_indices(preset: type[omb.Preset]) -> None:
    """OpenVINO wrote beyond its memory."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (int64[0, 3] x) => (float[0, 3, 2] y)
        <float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] k = {1, 2}> { v = Gather (w, x) y = Mul (v, k) }"""
    )
    assert preset.prepare(model, fallback="full").run([np.zeros((0, 3), np.int64)])[0].shape == (0, 3, 2)


#: Operators of com.microsoft, and the sizes of their inputs.
CONTRIB = {
    "no batch": ("MultiHeadAttention <num_heads = 2>", [(0, 2, 4), (0, 3, 4), (0, 3, 4)]),
    "no queries": ("MultiHeadAttention <num_heads = 2>", [(1, 0, 4), (1, 3, 4), (1, 3, 4)]),
    "no features": ("MultiHeadAttention <num_heads = 2>", [(1, 2, 0), (1, 3, 0), (1, 3, 0)]),
    "no columns": ("BiasGelu", [(1, 2, 0), (0,)]),
}


@pytest.mark.parametrize("form", CONTRIB)
def test_onnx_runtimes_operators_of_nothing(ort_cpu: type[omb.Preset], form: str) -> None:
    """They ended the process."""
    operator, sizes = CONTRIB[form]
    inputs = ", ".join(
        f"float[{', '.join(f'{name}{axis}' for axis in range(len(shape)))}] {name}"
        for name, shape in zip("abc", sizes, strict=False)
    )
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g ({inputs}) => (float[p, q, r] y) {{
        y = com.microsoft.{operator} ({", ".join("abc"[: len(sizes)])}) }}"""
    )
    prepared = ort_cpu.prepare(model)
    given = [np.ones(shape, np.float32) for shape in sizes]
    if form == "no features":
        with pytest.raises(RunError, match="without elements"):
            prepared.run(given)
    else:
        assert prepared.run(given)[0].shape == sizes[0]


def test_sizes_that_hold_of_the_traced_shapes_alone(engine: type[omb.Preset]) -> None:
    """What an exporter declares of a value inside may be the length that it traced: the process died of an empty batch of another one."""
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 20]> g (float[b, n, 6] x) => (float[b, 4] y) {
        u = Transpose <perm = [1, 0, 2]> (x) h = LSTM <hidden_size = 4> (u, w, r) t = Transpose <perm = [0, 2, 1, 3]> (h) s = Shape (t)
        s0 = Slice (s, c0, c1) s1 = Slice (s, c1, c2) s2 = Slice (s, c2, c3) s3 = Slice (s, c3, c4) m = Mul (s2, s3) k = Reshape (m, last)
        z = Concat <axis = 0> (s0, s1, k) q = Reshape (t, z) p = Transpose <perm = [1, 0, 2]> (q) i = Constant <value_int = -1> ()
        y = Gather <axis = 1> (p, i) }"""
    )
    numbers = np.random.default_rng(0)
    held = {"w": (1, 16, 6), "r": (1, 16, 4)}
    weights = {name: numbers.normal(size=shape).astype(np.float32) for name, shape in held.items()}
    integers = {"last": [-1], **{f"c{i}": [i] for i in range(5)}}
    for name, value in {**weights, **integers}.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(value), name))
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("p", onnx.TensorProto.FLOAT, ["b", 5, 4]))
    prepared = engine.prepare(model)
    for shape in ((2, 5, 6), (0, 6, 6), (2, 6, 6), (0, 5, 6)):
        assert prepared.run([np.ones(shape, np.float32)])[0].shape == (shape[0], 4)


@pytest.mark.parametrize("operator", ["GRU", "LSTM"])
@pytest.mark.parametrize(
    "tail",
    ["y = MatMul (q, m)", 'z, last = {} <hidden_size = 4, direction = "bidirectional"> (q, v, r) y = Identity (last)'],
)
def test_layers_of_two_directions_one_behind_the_other(preset: type[omb.Preset], operator: str, tail: str) -> None:
    """The size that a Reshape leaves open is that of both directions: of an empty batch OpenVINO's process died, and ONNX Runtime refused it."""
    layer = f'h = {operator} <hidden_size = 4, direction = "bidirectional"> (x, w, r)'
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[n, b, 6] x) => (float[c, d, e] y) <int64[3] sizes = {{0, 0, -1}}> {{
        {layer} t = Transpose <perm = [0, 2, 1, 3]> (h) q = Reshape (t, sizes) {tail.format(operator)} }}"""
    )
    gates = {"GRU": 12, "LSTM": 16}[operator]
    numbers = np.random.default_rng(0)
    held = {"w": (2, gates, 6), "v": (2, gates, 8), "r": (2, gates, 4), "m": (8, 3)}
    for name, shape in held.items():
        model.graph.initializer.append(
            onnx.numpy_helper.from_array(numbers.normal(size=shape).astype(np.float32), name)
        )
    prepared = preset.prepare(model, fallback="full")
    for batch in (2, 0, 1):
        right = (5, batch, 3) if "MatMul" in tail else (2, batch, 4)
        assert prepared.run([np.ones((5, batch, 6), np.float32)])[0].shape == right


@pytest.mark.parametrize("count", [2, 3])
def test_states_of_layers_one_behind_the_other(preset: type[omb.Preset], count: int) -> None:
    """ONNX Runtime's process died of an empty batch, or it was refused: in place of a layer, two results were one value."""
    layers = "h0, n0, s0 = LSTM <hidden_size = 4> (x, w, r, , , z) q0 = Squeeze (h0, one) "
    for i in range(1, count):
        layers += f"h{i}, n{i}, s{i} = LSTM <hidden_size = 4> (q{i - 1}, v, r) "
        layers += f"q{i} = Squeeze (h{i}, one) " if i < count - 1 else ""
    states = ", ".join(f"s{i}" for i in range(count))
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[n, b, 6] x) => (float[c, d, e] y) <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}},
        int64[1] four = {{4}}> {{ sizes = Shape (x) batch = Slice (sizes, one, two) k = Concat <axis = 0> (one, batch, four) z = ConstantOfShape (k)
        {layers} y = Concat <axis = 0> ({states}) }}"""
    )
    numbers = np.random.default_rng(0)
    for name, columns in {"w": 6, "v": 4, "r": 4}.items():
        held = numbers.normal(size=(1, 16, columns)).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(held, name))
    prepared = preset.prepare(model, fallback="full")
    for batch in (2, 0, 1):
        assert prepared.run([np.ones((6, batch, 6), np.float32)])[0].shape == (count, batch, 4)


@pytest.mark.parametrize("node", ["Conv <pads = [1, 1, 1, 1]> (s, w)", "MaxPool <kernel_shape = [1, 1]> (s)"])
def test_what_is_declared_of_a_constant(engine: type[omb.Preset], node: str) -> None:
    """PyTorch's newer exporter declares the axes of a Slice: of an empty batch what was cut off was there again."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 20]> g (float[b, 4, h, k] x) => (float[c, d, e, f] y) <int64[1] first = {{1}}, int64[1] axis = {{2}},
        int64[1] end = {{9223372036854775807}}> {{ s = Slice (x, first, end, axis) y = {node} }}"""
    )
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((2, 4, 3, 3), np.float32), "w"))
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("axis", onnx.TensorProto.INT64, [1]))
    prepared = engine.prepare(model)
    for batch in (2, 0):
        shape = prepared.run([np.ones((batch, 4, 6, 5), np.float32)])[0].shape
        assert shape == (batch, 2 if "Conv" in node else 4, 5, 5)


@pytest.mark.parametrize("kind", ["bool", "float", "int8"])
def test_unique_of_nothing(engine: type[omb.Preset], kind: str) -> None:
    """OpenVINO gave the results of the run before, of truth values too."""
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g ({kind}[a, b] x) => ({kind}[n] y) {{ y = Unique (x) }}'
    )
    prepared = engine.prepare(model)
    dtype = {"float": np.float32}.get(kind, kind)
    for x in (np.array([[1, 0], [1, 1]]), np.zeros((0, 2)), np.array([[1, 1]]), np.zeros((2, 0))):
        np.testing.assert_array_equal(prepared.run([x.astype(dtype)])[0], np.unique(x).astype(dtype))
