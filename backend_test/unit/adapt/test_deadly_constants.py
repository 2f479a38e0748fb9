# SPDX-License-Identifier: Apache-2.0
"""Forms whose constants tell that they end an engine's process: refused before it sees them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.models import INT64
from onnx_multi_backend.adapt import Limits
from onnx_multi_backend.adapt.pipeline import untouched
from onnx_multi_backend.engines import diagnosis
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.loading import load

INT32 = TensorProto.INT32
ELEM_TYPES = {np.int32: INT32, np.int64: INT64, np.uint64: TensorProto.UINT64}


def divided(op_type: str, dtype: Any, a: Any, b: Any) -> ModelProto:
    """Both known."""
    node = models.node(op_type, ["a", "b"], ["y"])
    constants = {"a": np.array(a, dtype), "b": np.array(b, dtype)}
    return models.model([node], [], [models.tensor("y", None, ELEM_TYPES[dtype])], initializers=constants)


def smallest(dtype: Any) -> int:
    return int(np.iinfo(dtype).min)


def within_a_branch() -> ModelProto:
    """The numbers as Constants in a subgraph, one of them from outside."""
    nodes = [
        models.node("Constant", [], ["b"], value_int=-1),
        models.node("Div", ["a", "b"], ["y"]),
    ]
    branch = helper.make_graph(nodes, "branch", [], [models.tensor("y", (), INT64)])
    node = models.node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    return models.model(
        [node],
        [models.tensor("c", (), TensorProto.BOOL)],
        [models.tensor("z", None, INT64)],
        initializers={"a": np.array(smallest(np.int64))},
    )


def ranged(step: int, elem_type: int = INT64) -> ModelProto:
    node = models.node("Range", ["start", "limit", "step"], ["y"])
    inputs = [models.tensor(name, (), elem_type) for name in ("start", "limit")]
    constants = {"step": np.array(step, np.int64)}
    return models.model([node], inputs, [models.tensor("y", None, elem_type)], initializers=constants)


def layer(op_type: str, shape: tuple[int, ...]) -> ModelProto:
    gates = {"LSTM": 4, "GRU": 3}[op_type]
    weights = {"w": np.zeros((1, 2 * gates, shape[2]), np.float32), "r": np.zeros((1, 2 * gates, 2), np.float32)}
    node = models.node(op_type, ["x", "w", "r"], ["y"], hidden_size=2)
    return models.model([node], [models.tensor("x", shape)], [models.tensor("y", None)], initializers=weights)


def gathered(batch_dims: int) -> ModelProto:
    inputs = [models.tensor("x", [3, 3, 3]), models.tensor("i", [3, 3, 1], INT64)]
    return models.one_node("GatherND", inputs, [models.tensor("y", None)], batch_dims=batch_dims)


def drawn(op_type: str, **attributes: float) -> ModelProto:
    return models.one_node(op_type, [models.tensor("x", [3])], [models.tensor("y", [3])], **attributes)


def unnamed(op_type: str) -> ModelProto:
    return models.model(
        [models.node(op_type, ["x", "", "x"], ["y"])], [models.tensor("x", [3])], [models.tensor("y", None)]
    )


def unpooled(shape: list[int] | None) -> ModelProto:
    inputs = [models.tensor("x", [1, 1, 2, 2]), models.tensor("i", shape, INT64)]
    return models.one_node("MaxUnpool", inputs, [models.tensor("y", None)], kernel_shape=[2, 2], strides=[2, 2])


def convolved(body: str) -> ModelProto:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 19]> g (float[2, 3, 4] x, uint8[2, 3, 4] u) => (float[a, b, c, d] y)
        <float[3, 3, 1, 1] w = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float[3, 1] f = {{1, 2, 3}}, uint8[3, 3, 1, 1] v = {{1, 2, 3, 4, 5, 6, 7, 8, 9}}, float s = {{1}}, int64[1] n = {{0}}> {{ {body} }}"""
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


FRAMES = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["": 19]> g (float[1, 16, 1] x) => (float[a, b, c, d] y)
    <int64 n = {0}, int64 s = {4}> { y = STFT <onesided = 1> (x, s, , n) }"""
)
PARTS = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["": 18]> g (float[2, 4] x) => (float[a, b] y, float[c, d] z)
    { y, z = Split <axis = 1, num_outputs = 1> (x) }"""
)


def recurrent(**shapes: tuple[int, ...]) -> ModelProto:
    """An LSTM, some of its weights of other shapes."""
    sizes = {"w": (1, 8, 4), "r": (1, 8, 2), **shapes}
    weights = {name: np.zeros(shape, np.float32) for name, shape in sizes.items()}
    node = models.node("LSTM", ["x", "w", "r"], ["y"], hidden_size=2)
    return models.model([node], [models.tensor("x", (3, 1, 4))], [models.tensor("y", None)], initializers=weights)


def grid(theta: tuple[int, ...]) -> ModelProto:
    node = models.node("AffineGrid", ["theta", "size"], ["y"])
    given, known = [models.tensor("size", [4], INT64)], {"theta": np.zeros(theta, np.float32)}
    return models.model([node], given, [models.tensor("y", None)], initializers=known)


def regions(image: tuple[int, ...]) -> ModelProto:
    """RoiAlign of a constant image; of ones as regions, it reads the first row and column."""
    sizes = {"output_height": 2, "output_width": 2, "sampling_ratio": 2}
    node = models.node("RoiAlign", ["x", "r", "b"], ["y"], spatial_scale=0.25, **sizes)
    known = {"x": np.zeros(image, np.float32), "b": np.zeros(1, np.int64)}
    return models.model([node], [models.tensor("r", [1, 4])], [models.tensor("y", None)], initializers=known)


MALFORMED = {
    **{
        f"LSTM with weights of the shape {shape}": recurrent(**{name: shape})
        for name, shape in (("w", (0, 8, 4)), ("w", (1, 8, 0)), ("r", (1, 0, 2)), ("w", ()), ("r", (8, 2)))
    },
    **{f"AffineGrid of {shape}": grid(shape) for shape in ((1, 0, 3), (1, 2, 0), (0, 2, 3))},
}
SHORT = {
    f"axes that do not fit in {body}": convolved(body)
    for body in (
        "y = Conv (x, w)",
        "r = Relu (x) y = Conv (r, w)",
        "i = ConvInteger (u, v) y = Cast <to = 1> (i)",
        "r = Relu (x) y = ConvTranspose (r, f)",
        "r = Squeeze (s) y = ConvTranspose (x, r)",
        "r = Flatten (x) q = Unsqueeze (f, n) y = ConvTranspose (r, q)",
    )
}
UNPOOLED = {
    "MaxUnpool of a scalar as indices": unpooled([]),
    "MaxUnpool of indices in a row": unpooled([4]),
    "MaxUnpool of indices of any shape": unpooled(None),
}
DRAWN = {
    "no deviation": drawn("RandomNormalLike", scale=0.0),
    "no interval": drawn("RandomUniformLike", low=2.0, high=1.0),
    "a limit that is NaN": drawn("RandomUniformLike", high=float("nan")),
}
QUOTIENTS = {
    "Div int32": divided("Div", np.int32, [smallest(np.int32), 7], [-1, 2]),
    "Div int64": divided("Div", np.int64, smallest(np.int64), [[2, -1]]),
}
REMAINDERS = {
    "Mod int32": divided("Mod", np.int32, [7, smallest(np.int32)], -1),
    "Mod int64": divided("Mod", np.int64, smallest(np.int64), -1),
}
OF_ORT = {
    **QUOTIENTS,
    **(REMAINDERS if applies({"onnxruntime": "<1.32"}) else {}),
    **({**DRAWN, "more parts than num_outputs": PARTS} if applies({"onnxruntime": ">=1.31"}) else {}),
    **(MALFORMED if applies({"onnxruntime": "<1.32"}) else {}),
    **({**UNPOOLED, **SHORT} if applies({"onnxruntime": "<1.28"}) else {}),
    "in a branch": within_a_branch(),
    "GatherND with a negative batch": gathered(-2),
    "STFT of frames of no length": FRAMES,
    "GRU without features": layer("GRU", (3, 1, 0)),
    **{f"{op_type} with an operand named nothing": unnamed(op_type) for op_type in ("Max", "Mean", "Min", "Sum")},
}
#: What is made without the engine's operator.
LEFT_OUT = {
    "LSTM without a batch": (layer("LSTM", (3, 0, 2)), (3, 0, 2)),
    "GRU without steps": (layer("GRU", (0, 3, 2)), (0, 3, 2)),
}
OF_OPENVINO = QUOTIENTS

CODE = """
import sys
import numpy as np
import onnx_multi_backend as omb
prepared = omb.presets()[sys.argv[1]].prepare(sys.argv[2], adapt=False)
prepared.run([np.ones(i.shape, i.dtype) for i in prepared.get_inputs()])
"""


@pytest.mark.parametrize(("name", "form"), [*(("OrtCpu", f) for f in OF_ORT), *(("Openvino", f) for f in OF_OPENVINO)])
def test_it_is_refused_and_the_engine_would_die(name: str, form: str, tmp_path: Path) -> None:
    preset = omb.presets()[name]
    if not preset.availability().usable:
        pytest.skip(f"{name} is not usable here")
    made = (OF_ORT if name == "OrtCpu" else OF_OPENVINO)[form]
    with pytest.raises(omb.UnsupportedModelError, match=r" would end the engine's process: it"):
        preset.prepare(made)
    assert dies(name, made, tmp_path), "an engine has been mended: its entry can go"


def dies(name: str, model: ModelProto, folder: Path) -> bool:
    """Whether the engine ends the process over a model as it stands."""
    onnx.save(model, folder / "model.onnx")
    command = [sys.executable, "-c", CODE, name, str(folder / "model.onnx")]
    return subprocess.run(command, capture_output=True, check=False).returncode < 0


@pytest.mark.parametrize("form", LEFT_OUT)
def test_it_is_left_out_and_the_engine_would_die(form: str, ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    model, shape = LEFT_OUT[form]
    assert 0 in ort_cpu.prepare(model).run([np.ones(shape, np.float32)])[0].shape
    assert dies("OrtCpu", model, tmp_path), "the engine has been mended: its entry can go"


@pytest.mark.parametrize("image", [(1, 1, 4, 0), (1, 2, 0, 4)])
def test_regions_of_a_constant_without_pixels(preset: type[omb.Preset], image: tuple[int, ...], tmp_path: Path) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="it does not compute RoiAlign correctly"):
        preset.prepare(regions(image))
    assert preset.name != "OrtCpu" or dies("OrtCpu", regions(image), tmp_path), "the engine has been mended"


def test_a_loop_whose_count_is_cut_to_nothing(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (int64[1] i, float[2] x) => (float[2] y) <int64[1] e = {0}> {
        n = Slice (i, e, e)
        y = Loop <body = b (int64 k, bool go, float[2] p) => (bool on, float[2] r) { on = Identity (go) r = Add (p, p) }> (n, , x) }"""
    )
    with pytest.raises(omb.UnsupportedModelError, match="would end the engine's process: its input has no elements"):
        ort_cpu.prepare(made)
    assert dies("OrtCpu", made, tmp_path), "the engine has been mended: its entry can go"


def test_regions_of_a_constant_without_channels_run(ort_cpu: type[omb.Preset]) -> None:
    prepared = ort_cpu.prepare(regions((1, 0, 4, 4)))
    assert prepared.run([np.zeros((1, 4), np.float32)])[0].shape == (1, 0, 2, 2)


def test_an_lstm_with_weights_of_a_run_in_their_stead(ort_cpu: type[omb.Preset]) -> None:
    """What a run gives is not packed beforehand."""
    made = recurrent(w=(1, 8, 0))
    made.graph.input.append(models.tensor("w", (1, 8, "n")))
    given = {"x": np.ones((3, 1, 4), np.float32), "w": np.zeros((1, 8, 4), np.float32)}
    assert not ort_cpu.prepare(made).run(given)[0].any()


def test_indices_of_any_shape_run_where_the_shape_of_the_result_is_given(ort_cpu: type[omb.Preset]) -> None:
    made = unpooled(None)
    made.graph.node[0].input.append("s")
    made.graph.input.append(models.tensor("s", [4], INT64))
    x, i = np.float32([[[[1, 2], [3, 4]]]]), np.array([[[[0, 2], [8, 10]]]])
    (found,) = ort_cpu.prepare(made).run([x, i, np.array([1, 1, 4, 4])])
    assert found.ravel()[i.ravel()].tolist() == [1, 2, 3, 4]


def test_the_execution_provider_refuses_them_all(openvino_ep: type[omb.Preset]) -> None:
    pool = models.one_node(
        "MaxPool", [models.tensor("x", (1, 1, 2, 2))], [models.tensor("y", None)], kernel_shape=[1, 1], strides=[0, 0]
    )
    short = convolved("q = QLinearConv (u, s, z, v, s, z, s, z) y = Cast <to = 1> (q)")
    for made in (*OF_ORT.values(), ranged(0), pool, short):
        with pytest.raises((omb.UnsupportedModelError, omb.InvalidModelError)):
            openvino_ep.prepare(made)


def marked(shape: tuple[int, ...], axis: int, *, branch: bool = False) -> ModelProto:
    """OneHot of indices of a fixed shape, in a branch of constant ones."""
    node = models.node("OneHot", ["x", "depth", "values"], ["y"], axis=axis)
    constants = {"depth": np.array([5]), "values": np.float32([0, 1])}
    sizes = [*shape]
    sizes.insert(axis % (len(shape) + 1), 5)
    given, made = models.tensor("x", shape, INT64), models.tensor("y", tuple(sizes))
    if not branch:
        return models.model([node], [given], [made], initializers=constants)
    constants["x"] = np.zeros(shape, np.int64)
    graph = helper.make_graph([node], "branch", [], [made])
    choice = models.node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
    return models.model([choice], [models.tensor("c", (), TensorProto.BOOL)], [made], initializers=constants)


@pytest.mark.parametrize("branch", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_marks_of_no_indices(ort_cpu: type[omb.Preset], shape: tuple[int, ...], axis: int, branch: bool) -> None:
    made = marked(shape, axis, branch=branch)
    feeds = [np.array(True)] if branch else [np.zeros(shape, np.int64)]
    (got,) = ort_cpu.prepare(made).run(feeds)
    assert (got.shape, got.dtype) == (tuple(d.dim_value for d in made.graph.output[0].type.tensor_type.shape.dim), "f4")


@pytest.mark.skipif(not applies({"onnxruntime": "<1.31"}), reason="newer releases compute it")
def test_the_engine_dies_of_marks_of_no_indices(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    onnx.save(marked((2, 0), -1), tmp_path / "model.onnx")
    command = [sys.executable, "-c", CODE, "OrtCpu", str(tmp_path / "model.onnx")]
    assert subprocess.run(command, capture_output=True, check=False).returncode < 0


@pytest.mark.parametrize("elem_type", [INT32, INT64, models.FLOAT])
def test_a_range_without_end_is_not_written_as_a_loop_without_end(openvino: type[omb.Preset], elem_type: int) -> None:
    """OpenVINO refuses it in words, and would compute the Loop of ONNX's function for it while it compiles."""
    dtype = helper.tensor_dtype_to_np_dtype(elem_type)
    constants = {name: np.array(value, dtype) for name, value in {"start": 0, "limit": 5, "step": 0}.items()}
    node = models.node("Range", [*constants], ["y"])
    made = models.model([node], [], [models.tensor("y", None, elem_type)], initializers=constants)
    with pytest.raises(omb.UnsupportedModelError, match="would end the engine's process: its step is 0"):
        openvino.prepare(made)


def by_zero(op_type: str, behind: str = "Identity") -> ModelProto:
    """An input divided by a constant, and another node behind."""
    nodes = [models.node(op_type, ["x", "zero"], ["q"]), models.node(behind, ["q"], ["y"])]
    given, made = models.tensor("x", (2,), INT64), models.tensor("y", None, INT64)
    return models.model(nodes, [given], [made], initializers={"zero": np.array([0, 2])})


@pytest.mark.parametrize("op_type", ["Div", "Mod"])
def test_a_division_by_zero_that_is_refused_is_named_and_lacks_no_operator(
    ort_cpu: type[omb.Preset], op_type: str
) -> None:
    if applies({"onnxruntime": "<1.31"}):
        pytest.skip("this release refuses none")
    words = f": the model divides an integer by a constant 0: {op_type} 'the_{op_type}'. Correct"
    with pytest.raises(omb.UnsupportedModelError, match=words) as raised:
        ort_cpu.prepare(by_zero(op_type))
    assert raised.value.operators == (op_type,)


def test_beside_a_division_by_zero_only_what_is_lacking_is_called_so() -> None:
    made = by_zero("Div", behind="Frobnicate")
    answers = {"Div": "no", "Frobnicate": "unknown"}
    loaded = load(made)
    error = diagnosis.refusal(
        Payload(loaded, untouched(made)),
        "no",
        lambda single: answers[single.graph.node[0].op_type],
        limits=Limits(),
        who="Toy",
    )
    assert "it lacks Frobnicate. " in str(error)
    assert "Div 'the_Div': it divides an integer by a constant 0" in str(error)


HARMLESS = {
    "another divisor": (divided("Div", np.int32, [smallest(np.int32), 7], [2, -1]), [-(2**30), -7]),
    "another dividend": (divided("Mod", np.int64, smallest(np.int64) + 1, -1), 0),
    **{form: (made, 0 if form == "Mod int64" else [0, 0]) for form, made in REMAINDERS.items() if form not in OF_ORT},
}


@pytest.mark.parametrize("form", HARMLESS)
def test_others_run(ort_cpu: type[omb.Preset], form: str) -> None:
    made, wanted = HARMLESS[form]
    assert ort_cpu.prepare(made).run([])[0].tolist() == wanted


def test_a_constant_that_an_input_hides_is_none(ort_cpu: type[omb.Preset]) -> None:
    """An initializer that is an input too is a default."""
    made = ranged(0)
    made.graph.input.append(models.tensor("step", (), INT64))
    prepared = ort_cpu.prepare(made)
    assert prepared.run({"start": np.array(0), "limit": np.array(4), "step": np.array(2)})[0].tolist() == [0, 2]


def test_a_step_that_is_known_runs(preset: type[omb.Preset]) -> None:
    assert preset.prepare(ranged(-1)).run([np.array(2), np.array(0)])[0].tolist() == [2, 1]


@pytest.mark.parametrize(
    "graph",
    [
        """() => (float[a, b, c] y) <float[0, 4, 4] c1 = {}, float[1, 1] c2 = {-0.4}> {
        v = Div (c1, c2) y = ThresholdedRelu (v) }""",
        """() => (uint32[a, b] y) <uint32[0, 0] c1 = {}, uint32[0] c2 = {}> { y = BitShift <direction = "RIGHT"> (c1, c2) }""",
    ],
)
def test_nothing_is_written_of_what_has_no_elements(openvino: type[omb.Preset], graph: str) -> None:
    """OpenVINO computes constants while it compiles, and some operators on constants without elements end the process."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> g {graph}')
    prepared = openvino.prepare(model)
    assert {a.pass_name for a in prepared.adaptations}.isdisjoint({"special_values", "bit_shift"})
    assert prepared.run([])[0].size == 0


@pytest.mark.parametrize("kind", ["bfloat16", "float8e4m3fn", "float8e5m2", "float8e8m0", "float4e2m1"])
def test_a_constant_of_narrow_numbers_without_elements_keeps_its_shape(openvino: type[omb.Preset], kind: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 13, opset_import: ["": 24]> g () => ({kind}[a, b] y) <{kind}[0, 2] c = {{}}> {{ y = Transpose (c) }}"""
    )
    assert openvino.prepare(model).run([])[0].shape == (2, 0)


@pytest.mark.parametrize("axis", [-2, 1])
def test_the_running_sums_of_nothing_are_nothing(openvino: type[omb.Preset], axis: int) -> None:
    """Of the scalar for which OpenVINO takes the constant the process ended."""
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 14]> g () => (bfloat16[a, b] y)
        <bfloat16[0, 2] c = {{}}, int64 axis = {{{axis}}}> {{ y = CumSum (c, axis) }}"""
    )
    assert openvino.prepare(model).run([])[0].shape == (0, 2)


@pytest.mark.parametrize("shape", [(0, 4), (2, 0), (0, 0)])
def test_what_has_no_elements_at_run_time_is_computed(openvino: type[omb.Preset], shape: tuple[int, int]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 20]> g (float[n, m] x, uint64[n, m] b) => (float[n, m] y, uint64[n, m] z) {
        y = ThresholdedRelu (x) z = BitShift <direction = "RIGHT"> (b, b) }"""
    )
    results = openvino.prepare(model).run([np.zeros(shape, np.float32), np.zeros(shape, np.uint64)])
    assert [result.shape for result in results] == [shape, shape]


def moved(op_type: str, elem_type: int, behind: str = "", **attributes: Any) -> ModelProto:
    """A constant of 4-bit elements whose elements are moved."""
    last = models.tensor("y", None, TensorProto.FLOAT if behind else elem_type)
    nodes = [models.node(op_type, ["c", *attributes.pop("read", [])], ["m" if behind else "y"], **attributes)]
    if behind:
        nodes.append(models.node(behind, ["m"], ["y"], to=TensorProto.FLOAT))
    made = models.model(nodes, [], [last], initializers={"sizes": np.array([2, 4, 2, 8])}, opsets={"": 25})
    made.graph.initializer.append(helper.make_tensor("c", elem_type, [4, 2, 8], [1] * 64))
    made.ir_version = 11
    return made


MOVED = [
    moved("Concat", TensorProto.FLOAT4E2M1, "Cast", read=["c"], axis=0),
    moved("Expand", TensorProto.UINT4, "Cast", read=["sizes"]),
]
#: Where they are a result, they are carried as bytes.
CARRIED = [
    (moved("Transpose", TensorProto.FLOAT4E2M1), (8, 2, 4)),
    (moved("Expand", TensorProto.INT4, read=["sizes"]), (2, 4, 2, 8)),
]


@pytest.mark.parametrize("model", MOVED)
def test_openvino_gets_no_constant_of_packed_elements_to_move(openvino: type[omb.Preset], model: ModelProto) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="would end the engine's process: it moves elements of 4 bits"):
        openvino.prepare(model)


@pytest.mark.parametrize(("model", "shape"), CARRIED)
def test_moved_elements_of_4_bits_that_are_a_result_are_carried(
    openvino: type[omb.Preset], model: ModelProto, shape: tuple[int, ...]
) -> None:
    (found,) = openvino.prepare(model).run([])
    assert found.shape == shape and (found.astype(np.float32) == 1).all()


def _within(moving: str, kind: int) -> onnx.ModelProto:
    return onnx.parser.parse_model(f"""<ir_version: 11, opset_import: ["": 24, "l": 1]>
        g (bool b, float[4, 2] x) => (float[N, M] y) <float[4, 2] c = {{1, 2, 3, 1, 1, 1, 1, 4}}> {{ y = l.f (b, x, c) }}
        <domain: "l", opset_import: ["": 24]> f (b, x, c) => (y) {{
            p = Cast <to = {kind}> (c) r = Constant <value_ints = [2, 1]> ()
            y = If (b) <then_branch = t () => (float[N, M] u) {{ m = {moving} k = Identity (m) u = Cast <to = 1> (k) }},
                        else_branch = e () => (float[N, M] v) {{ v = Identity (x) }}>
        }}""")


def test_packed_constants_are_followed_into_functions_and_branches(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="Tile .*it moves elements of 4 bits"):
        openvino.prepare(_within("Tile (p, r)", TensorProto.UINT4))


def test_those_that_are_carried_are_moved_there(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(_within("Transpose (p)", TensorProto.FLOAT4E2M1))
    (found,) = prepared.run([np.array(True), np.zeros((4, 2), np.float32)])
    np.testing.assert_array_equal(found, np.float32([[1, 3, 1, 1], [2, 1, 1, 4]]))


def test_a_transpose_behind_which_packed_elements_become_wider_is_computed(openvino: type[omb.Preset]) -> None:
    model = moved("Transpose", TensorProto.FLOAT4E2M1, "Cast", perm=[1, 0, 2])
    assert openvino.run_model(model, [])[0].shape == (2, 4, 8)


@pytest.mark.parametrize("step", ["value_float = 0.0", "value = float {0}"])
def test_a_step_of_nothing_however_it_is_written(openvino: type[omb.Preset], step: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float a, float b) => (float[n] y) {{
        s = Constant <{step}> () y = Range (a, b, s) }}"""
    )
    with pytest.raises(omb.UnsupportedModelError, match="its step is 0"):
        openvino.prepare(model)


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_what_is_scattered_into_a_number(reduction: str, openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float z) => (int64 y, float q) <int64 x = {{1}}, int64 i = {{0}}, int64 u = {{9}}> {{
            y = ScatterElements <reduction = "{reduction}"> (x, i, u) q = Relu (z) }}"""
    )
    with pytest.raises(omb.UnsupportedModelError, match="scatters into a tensor without axes"):
        openvino.prepare(model)


def test_a_branch_with_frames_of_no_length_may_stay_untaken(ort_cpu: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 19]> g (float[1, 16, 1] x, bool b) => (float[n] y) <int64 none = {0}, int64 step = {4}, int64[1] flat = {-1}> {
        y = If (b) <then_branch = t () => (float[p] u) { f = STFT <onesided = 1> (x, step, , none) u = Reshape (f, flat) },
                    else_branch = e () => (float[q] v) { v = Reshape (x, flat) }> }"""
    )
    x = np.arange(16, dtype=np.float32).reshape(1, 16, 1)
    np.testing.assert_array_equal(ort_cpu.prepare(model).run([x, np.array(False)])[0], x.ravel())


@pytest.mark.parametrize(
    "text",
    [
        "() => (float[n] y) <float[3, 0, 3] c = {}> { y = Unique (c) }",
        "(float[a, 4, b, c] x) => (float y) <int64[3, 0, 3] t = {}> { y = SoftmaxCrossEntropyLoss <ignore_index = 7> (x, t) }",
        "(float[a, 4, b, c] x) => (float y) <int64[3, 0, 3] t = {}> { y = NegativeLogLikelihoodLoss <ignore_index = 7> (x, t) }",
    ],
)
def test_constants_without_elements_that_openvino_dies_of(text: str, openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="no elements"):
        openvino.prepare(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {text}'))
