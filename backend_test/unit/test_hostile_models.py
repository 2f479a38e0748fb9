# SPDX-License-Identifier: Apache-2.0
"""What an engine answers with a result or an error is answered by its preset too: in words, soon, and in little memory."""

from __future__ import annotations

import contextlib
import logging
import re
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.adapt.unneeded import without_unneeded
from onnx_multi_backend.engines.across_nodes.distinct_names import with_distinct_names
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes
from onnx_multi_backend.models.plausible import expanded, expands_too_far, implausible, multiplies, nests_too_far


def _layer_normalization(axis: int) -> ModelProto:
    inputs = [models.tensor("x", [2, 3, 4]), models.tensor("w", [3, 4]), models.tensor("b", [3, 4])]
    return models.one_node("LayerNormalization", inputs, [models.tensor("y", [2, 3, 4])], axis=axis)


def _group_normalization(groups: int) -> ModelProto:
    inputs = [models.tensor("x", [3, 4, 2, 2]), models.tensor("s", [4]), models.tensor("b", [4])]
    made = models.one_node("GroupNormalization", inputs, [models.tensor("y", [3, 4, 2, 2])], num_groups=groups)
    made.opset_import[0].version = 21
    return made


def _gather_nd(batch_dims: int) -> ModelProto:
    inputs = [models.tensor("x", [2, 2, 2]), models.tensor("i", [2, 1], models.INT64)]
    return models.one_node("GatherND", inputs, [models.tensor("y", None)], batch_dims=batch_dims)


def _einsum(equation: str) -> ModelProto:
    return models.one_node("Einsum", [models.tensor("x", [])], [models.tensor("y", None)], equation=equation)


def _depth_to_space(size: int) -> ModelProto:
    return models.one_node(
        "DepthToSpace", [models.tensor("x", [1, 8, 2, 2])], [models.tensor("y", None)], blocksize=size
    )


def _split(named: int) -> ModelProto:
    """Into four."""
    outputs = [models.tensor(f"y{i}", None) for i in range(4)]
    return models.one_node("Split", [models.tensor("x", [4])], outputs, axis=0, num_outputs=named)


def _gemm(beta: float) -> ModelProto:
    inputs = [models.tensor(name, [2, 2], models.INT64) for name in "abc"]
    return models.one_node("Gemm", inputs, [models.tensor("y", [2, 2], models.INT64)], beta=beta)


def _resize(scale: np.ndarray) -> ModelProto:
    """In an opset that has no Resize, so that OpenVINO refuses it."""
    made = models.one_node("Resize", [models.tensor("x", [1, 1, 4, 4])], [models.tensor("y", None)], mode="cubic")
    made.opset_import[0].version = 1
    made.graph.node[0].input.extend(["", "s"])
    made.graph.initializer.append(numpy_helper.from_array(scale, "s"))
    return made


def _negative_size() -> ModelProto:
    """With an operator that no engine has here, so that each is asked about every node."""
    inputs = [
        models.tensor("x", [50, 4, -(2**63)]),
        models.tensor("i", [2, 3], models.INT64),
        models.tensor("b", ["n"], TensorProto.UINT8),
    ]
    nodes = [models.node("Gather", ["x", "i"], ["y"]), models.node("ImageDecoder", ["b"], ["image"])]
    outputs = [models.tensor("y", None), models.tensor("image", None, TensorProto.UINT8)]
    made = models.model(nodes, inputs, outputs)
    made.opset_import[0].version = 27
    return made


def _doubling(count: int) -> ModelProto:
    imports = [helper.make_opsetid("", models.OPSET), helper.make_opsetid("d", 1)]
    functions = [helper.make_function("d", "F0", ["a"], ["b"], [helper.make_node("Softsign", ["a"], ["b"])], imports)]
    for k in range(1, count + 1):
        calls = [helper.make_node(f"F{k - 1}", [a], [b], domain="d") for a, b in (("a", "t"), ("t", "b"))]
        functions.append(helper.make_function("d", f"F{k}", ["a"], ["b"], calls, imports))
    call = models.node(f"F{count}", ["x"], ["y"], domain="d")
    return models.model([call], [models.tensor("x")], [models.tensor("y")], opsets={"d": 1}, functions=functions)


#: What ONNX's checker or an engine that is shown the node alone dies of.
DEADLY: dict[str, Callable[[], ModelProto]] = {
    "an axis beyond int32": lambda: _layer_normalization(2**63 - 1),
    "an axis of 2**31": lambda: _layer_normalization(2**31),
    "no groups": lambda: _group_normalization(0),
    "a block whose square is 0 in int64": lambda: _depth_to_space(2**32),
    "a factor beyond the type": lambda: _gemm(-1e38),
    "a scale without axes": lambda: _resize(np.array(2.0, np.float32)),
    "a size far below 0": _negative_size,
}


@pytest.mark.parametrize("name", DEADLY)
def test_what_would_end_the_process_is_an_error(preset: type[omb.Preset], name: str, fresh: Callable[..., str]) -> None:
    data = DEADLY[name]().SerializeToString()
    told = fresh(
        "import onnx_multi_backend as omb\n"
        f"preset, data = omb.presets()[{preset.name!r}], {data!r}\n"
        "try: preset.prepare(data)\n"
        "except omb.OnnxMultiBackendError as error: print(type(error).__name__)\n"
        "else: print('prepared')"
    )
    assert told in ("InvalidModelError", "UnsupportedModelError", "MisplacedError", "prepared")


def test_what_ends_onnx_and_not_openvino_is_an_error(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(_gather_nd(-2))


def test_an_equation_that_onnx_never_finishes_is_refused(openvino: type[omb.Preset]) -> None:
    """OpenVINO refuses it, and nothing else is asked about it."""
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(_einsum("#"), isolate=True, time_limit=20)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (_layer_normalization(-1), None),
        (_group_normalization(2), None),
        (_gather_nd(1), None),
        (models.one_node("Constant", [], [models.tensor("y", [])], value_int=2**62), None),
        (_einsum("ij..., ...jk -> ...ik"), None),
        (_einsum("->"), None),
        (_layer_normalization(2**31), "LayerNormalization .* has axis out of range"),
        (_depth_to_space(2), None),
        (_split(4), None),
        (_split(3), "Split .* has more outputs than num_outputs"),
        (_einsum("i1->i"), "Einsum .* has an equation of other signs than letters"),
        (_einsum("....->"), "Einsum .* has an equation of other signs than letters"),
    ],
)
def test_what_no_valid_model_has_is_told_from_what_one_may_have(made: ModelProto, why: str | None) -> None:
    found = implausible(all_nodes(made))
    if why is None:
        assert found is None
    else:
        assert found is not None
        assert re.match(why, found)


def test_functions_are_counted_without_being_put_in_place() -> None:
    assert expanded(_doubling(3)) == 8
    assert not expands_too_far(_doubling(10))
    assert expanded(_doubling(100)) == 2**100
    assert expands_too_far(_doubling(25))


def test_functions_that_double_are_refused_at_once(openvino: type[omb.Preset]) -> None:
    """OpenVINO takes no functions, and says so in a moment."""
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(_doubling(25))


@pytest.mark.parametrize(
    "beside",
    ["c = Div (y, k)", "c = Add (y, k)", "c = Resize (y, , k)", "m = Constant <value_float = 2.0> () c = Mul (y, m)"],
)
def test_functions_that_double_are_not_put_in_place(openvino: type[omb.Preset], beside: str) -> None:
    """That would never end, whatever else is looked for."""
    made = _doubling(25)
    made.graph.node.extend(onnx.parser.parse_graph(f"g () => () {{ {beside} }}").node)
    made.graph.initializer.append(numpy_helper.from_array(np.array([2], np.float32), "k"))
    made.graph.output.append(models.tensor("c"))
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(made)


def test_functions_that_double_are_not_handed_over_behind_a_cast(ort_cpu: type[omb.Preset]) -> None:
    """ONNX Runtime says at once that NegativeLogLikelihoodLoss takes no uint4, but not before it has put functions in place if a Cast makes it."""
    made = _doubling(25)
    made.graph.node.extend(onnx.parser.parse_graph("g () => () { l = NegativeLogLikelihoodLoss (u, t) }").node)
    made.graph.input.extend([models.tensor("u", None, TensorProto.UINT4), models.tensor("t", None, TensorProto.INT32)])
    made.graph.output.append(models.tensor("l", None))
    with pytest.raises(omb.OnnxMultiBackendError):
        ort_cpu.prepare(made)


def test_a_name_of_thousands_of_values_does_not_grow() -> None:
    """OpenVINO's models give each value a name of its own; a name for each that was a letter longer took a minute."""
    text = """<ir_version: 8, opset_import: ["": 18]> g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] a) { a = Relu (x) }, else_branch = e () => (float[2] a) { a = Neg (x) }> }"""
    made = onnx.parser.parse_model(text)
    (node,) = made.graph.node
    for i in range(1000):
        copy = made.graph.node.add()
        copy.CopyFrom(node)
        copy.output[0] = f"y{i}"
    renamed = with_distinct_names(Contents(made)).model
    names = [name for node in all_nodes(renamed) for name in node.output]
    assert len(names) == len({*names}) == 3003
    assert max(map(len, names)) <= len("a_2002")


@pytest.mark.parametrize("kind", [TensorProto.COMPLEX64, TensorProto.STRING, TensorProto.FLOAT])
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("sizes", [[], [1], [2]])
def test_a_loop_whose_constant_count_or_condition_has_another_type(
    preset: type[omb.Preset], kind: int, place: int, sizes: list[int]
) -> None:
    """They were counted all the same: a TypeError or a ValueError."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] y) <int64 m = {2}, bool c = {1}> {
        y = Loop (m, c, x) <body = b (int64 i, bool d, float[2] s) => (bool e, float[2] t) { e = Identity (d) t = Neg (s) }> }"""
    )
    elements = np.full(sizes, 1)
    array = elements.astype(str).astype(object) if kind == TensorProto.STRING else elements
    held = numpy_helper.from_array(
        array if kind == TensorProto.STRING else array.astype(helper.tensor_dtype_to_np_dtype(kind)), "mc"[place]
    )
    made.graph.initializer[place].CopyFrom(held)
    with contextlib.suppress(omb.OnnxMultiBackendError):  # OpenVINO takes a string
        preset.prepare(made)


def test_a_loop_whose_body_gives_fewer_results_than_it_has_states() -> None:
    """Looking for states that no result needs was an IndexError."""
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[2] x, int64 m, bool c) => (float[2] s) {
        s = Loop (m, c, x) <body = b (int64 i, bool d, float[2] p) => (bool e) { e = Identity (d) }> t = Neg (x) }"""
    )
    assert [change.pass_name for change in without_unneeded(made)[1]] == ["unneeded_nodes"]


def test_functions_that_come_to_many_times_what_the_model_holds_are_not_written_out(openvino: type[omb.Preset]) -> None:
    """OpenVINO takes no functions; it would take 20 s and more for 4,096 nodes in a row."""
    assert not multiplies(_doubling(10))
    assert multiplies(_doubling(12))
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(_doubling(12))


@pytest.mark.parametrize("kind", ["functions", "graphs"])
def test_what_never_ends_is_not_handed_over_in_an_older_version(kind: str, ort_cpu: type[omb.Preset]) -> None:
    """As it is, the engine refuses it at once for its version."""
    newest = onnx.defs.onnx_opset_version()
    if not any(change.pass_name == "opset_version" for change in ort_cpu.prepare(_newest(models.relu())).adaptations):
        pytest.skip(f"the engine reads opset {newest}")
    made = _newest(_doubling(24) if kind == "functions" else _nested(15, _relus(1)))
    with pytest.raises(omb.UnsupportedModelError, match="more nodes than the engine may ever finish"):
        ort_cpu.prepare(made)


def test_what_never_ends_is_not_put_in_order(preset: type[omb.Preset]) -> None:
    """As it is, the engines refuse it at once for the order of its nodes."""
    made = _doubling(24)
    branch = helper.make_graph(
        [models.node("Relu", ["b"], ["a"]), models.node("Neg", ["x"], ["b"])],
        "unsorted",
        [],
        [models.tensor("a", None)],
    )
    made.graph.node.append(models.node("If", ["c"], ["z"], then_branch=branch, else_branch=branch))
    made.graph.input.append(models.tensor("c", [], TensorProto.BOOL))
    made.graph.output.append(models.tensor("z", None))
    with pytest.raises(omb.UnsupportedModelError):
        preset.prepare(made)


def test_what_is_not_looked_at_is_not_handed_over_in_an_older_version(ort_cpu: type[omb.Preset]) -> None:
    """Nothing is asked about it, so it might be computed wrongly, or end the process."""
    made = models.one_node("Relu", [models.tensor("x", [2])], [models.tensor("y", [2])])
    made.graph.node.append(models.node("Concat", ["y"], ["w"], axis=2**32))
    made.graph.output.append(models.tensor("w", None))
    if not any(change.pass_name == "opset_version" for change in ort_cpu.prepare(_newest(models.relu())).adaptations):
        pytest.skip(f"the engine reads opset {onnx.defs.onnx_opset_version()}")
    with pytest.raises(omb.UnsupportedModelError, match="has axis out of range"):
        ort_cpu.prepare(_newest(made))


def test_a_large_seed_is_nothing_out_of_range(ort_cpu: type[omb.Preset]) -> None:
    made = _newest(models.one_node("Dropout", [models.tensor("x", [2])], [models.tensor("y", [2])], seed=2**40))
    np.testing.assert_array_equal(ort_cpu.prepare(made).run([np.ones(2, np.float32)])[0], 1)


def _newest(model: ModelProto) -> ModelProto:
    """The model in onnx's newest opset, its functions too."""
    for holder in (model, *model.functions):
        for opset in holder.opset_import:
            if not opset.domain:
                opset.version = onnx.defs.onnx_opset_version()
    return model


def _nested(depth: int, nodes: list[NodeProto], elem_type: int = models.FLOAT) -> ModelProto:
    """Nodes that make y of x, in both branches of an If, which is in both branches of another, and so on."""
    made = models.tensor("y", None, elem_type)
    graph = helper.make_graph(nodes, "inner", [], [made])
    for level in range(depth):
        made = models.tensor(f"y{level}", None, elem_type)
        branching = models.node("If", ["c"], [made.name], then_branch=graph, else_branch=graph)
        graph = helper.make_graph([branching], f"level{level}", [], [made])
    inputs = [models.tensor("x", ["n"], elem_type), models.tensor("c", [], TensorProto.BOOL)]
    return models.model(list(graph.node), inputs, [made])


def _relus(count: int) -> list[NodeProto]:
    names = ["x", *(f"r{k}" for k in range(count - 1)), "y"]
    return [models.node("Relu", [a], [b]) for a, b in pairwise(names)]


def test_graphs_in_graphs_are_worth_a_look_as_long_as_they_are_few() -> None:
    assert not nests_too_far(Contents(models.relu()))
    assert not nests_too_far(Contents(_nested(1, _relus(5000))))  # what exporters write
    assert not nests_too_far(Contents(_nested(4, _relus(3))))
    assert nests_too_far(Contents(_nested(8, _relus(3))))
    assert not nests_too_far(Contents(_nested(2, _relus(500))))
    assert nests_too_far(Contents(_nested(2, _relus(1000))))


def test_graphs_in_graphs_are_refused_with_the_engine_s_own_answer(
    ort_cpu: type[omb.Preset], compilations: list[str]
) -> None:
    """Each node would be compiled with all the graphs around it."""
    made = _nested(9, [models.node("ImageDecoder", ["x"], ["y"])], TensorProto.UINT8)
    made.opset_import[0].version = 20
    with pytest.raises(omb.UnsupportedModelError, match="ImageDecoder"):
        ort_cpu.prepare(made)
    assert compilations == ["_session"]


def _memory(fresh: Callable[..., str], folder: Path, made: ModelProto) -> int:
    """The most memory that inferring the types of a model takes, in MiB."""
    (folder / "large.onnx").write_bytes(made.SerializeToString())
    return int(
        fresh(
            "import resource, onnx\n"
            "from onnx_multi_backend.adapt.inferring.inference import infer\n"
            f"infer(onnx.ModelProto.FromString({models.subtract().SerializeToString()!r}))\n"
            f"model = onnx.load({str(folder / 'large.onnx')!r})\n"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "infer(model)\n"
            "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)"
        )
    )


def _sliced(count: int, elem_type: int) -> ModelProto:
    inputs = [models.tensor("x", [count], elem_type)]
    nodes = [models.node("Add", ["x", "x"], ["d"]), models.node("Slice", ["d", "zero", "one"], ["y"])]
    constants = {"zero": np.array([0]), "one": np.array([1])}
    return models.model(nodes, inputs, [models.tensor("y", None, elem_type)], initializers=constants)


@pytest.mark.parametrize("elem_type", [models.INT64, models.FLOAT])
def test_a_large_value_is_no_shape(fresh: Callable[..., str], tmp_path: Path, elem_type: int) -> None:
    if sys.platform == "win32":
        pytest.skip("no resource module")
    assert _memory(fresh, tmp_path, _sliced(2_000_000, elem_type)) < 40
    (dim,) = infer(_sliced(2_000_000, elem_type)).graph.output[0].type.tensor_type.shape.dim
    assert dim.dim_value == 1


@pytest.mark.parametrize("kind", ["int64", "float"])
@pytest.mark.parametrize("where", ["initializer", "Constant"])
def test_a_constant_that_is_declared_large_is_no_shape(
    fresh: Callable[..., str], tmp_path: Path, where: str, kind: str
) -> None:
    """It has one element; ONNX believes what is declared of it."""
    if sys.platform == "win32":
        pytest.skip("no resource module")
    held, made = (
        ("int64 a = {-1}", "")
        if where == "initializer"
        else (f"{kind}[2000000] a", "a = Constant <value = int64 {-1}> ()")
    )
    text = f"""<ir_version: 10, opset_import: ["": 23]> g (float[2, 3] x) => (int64[n] r) <int64 one = {{1}}, {held}> {{
        {made} s = Shape (x) k = Size (s) p = Add (k, a) r = Range (p, k, one) }}"""
    model = onnx.parser.parse_model(text)
    if where == "initializer":
        model.graph.value_info.append(models.tensor("a", [2_000_000], TensorProto.INT64))
    assert _memory(fresh, tmp_path, model) < 40


def test_a_large_value_that_only_a_shape_tells_of_is_none_either(fresh: Callable[..., str], tmp_path: Path) -> None:
    """Its length is known once integers are followed."""
    nodes = [
        models.node("Mul", ["half", "two"], ["length"]),
        models.node("ConstantOfShape", ["length"], ["long"]),
        models.node("Add", ["long", "long"], ["y"]),
    ]
    constants = {"half": np.array([1_000_000]), "two": np.array([2])}
    made = models.model(nodes, [], [models.tensor("y", None)], initializers=constants)
    assert _memory(fresh, tmp_path, made) < 40


def test_a_large_constant_is_no_shape_and_stays(fresh: Callable[..., str], tmp_path: Path) -> None:
    table = np.arange(1_000_000)
    nodes = [
        helper.make_node("Constant", [], ["more"], value=numpy_helper.from_array(table)),
        models.node("Add", ["table", "more"], ["sum"]),
        models.node("Gather", ["sum", "i"], ["y"]),
    ]
    made = models.model(
        nodes, [models.tensor("i", [3], models.INT64)], [models.tensor("y", None, 7)], initializers={"table": table}
    )
    typed = infer(made)
    assert typed.graph.initializer == made.graph.initializer
    assert typed.graph.node == made.graph.node
    assert [d.dim_value for d in typed.graph.output[0].type.tensor_type.shape.dim] == [3]
    wrong = models.model(
        [models.node("Reshape", ["x", "table"], ["y"])],
        [models.tensor("x")],
        [models.tensor("y", None)],
        initializers={"table": table[:100_000]},
    )
    assert _memory(fresh, tmp_path, wrong) < 10


def test_shapes_are_still_followed() -> None:
    nodes = [
        models.node("Shape", ["x"], ["shape"]),
        models.node("Gather", ["shape", "last"], ["size"]),
        models.node("Concat", ["one", "size"], ["wanted"], axis=0),
        models.node("Reshape", ["z", "wanted"], ["y"]),
    ]
    constants = {"last": np.array([1]), "one": np.array([-1])}
    inputs = [models.tensor("x", ["N", 7]), models.tensor("z", ["M", 14])]
    made = models.model(nodes, inputs, [models.tensor("y", None)], initializers=constants)
    dims = infer(made).graph.output[0].type.tensor_type.shape.dim
    assert dims[1].dim_value == 7
    assert infer(made) == onnx.shape_inference.infer_shapes(made, data_prop=True)


def _short() -> ModelProto:
    weight = TensorProto(name="w", data_type=TensorProto.INT8, dims=[2], raw_data=b"0123456789")
    inputs = [models.tensor("s", [4]), models.tensor("z", [2], TensorProto.INT8)]
    made = models.model(
        [models.node("DequantizeLinear", ["w", "s", "z"], ["y"], axis=0)], inputs, [models.tensor("y", [2])]
    )
    made.graph.initializer.append(weight)
    return made


def _text(operator: str, attribute: str, *inputs: Any) -> ModelProto:
    made = models.one_node(operator, list(inputs), [models.tensor("y", None)], **{attribute: "reflect"})
    made.graph.node[0].attribute[0].s = b"\xff"
    return made


def _pooled() -> ModelProto:
    kernel = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}
    return models.one_node(
        "MaxPool", [models.tensor("x", [1, 1, 4, 4, 4])], [models.tensor("y", [1, 1, 2, 2, 2])], **kernel
    )


def _narrow() -> ModelProto:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT8E4M3FNUZ, dims=[4], raw_data=b"12")
    made = models.model([models.node("Cast", ["w"], ["y"], to=TensorProto.FLOAT)], [], [models.tensor("y", [4])])
    made.graph.initializer.append(weight)
    return made


ODD: dict[str, Callable[[], ModelProto]] = {
    "a weight with too many bytes": _short,
    "a mode that is not text": lambda: _text(
        "GridSample", "mode", models.tensor("x", [1, 1, 2, 2]), models.tensor("g", [1, 2, 2, 2])
    ),
    "a padding mode that is not text": lambda: _text(
        "Pad", "mode", models.tensor("x", [3]), models.tensor("p", [2], models.INT64)
    ),
    "padding that is not text": lambda: _text("MaxPool", "auto_pad", models.tensor("x", [1, 1, 4, 4])),
    "a pool of more axes than its kernel": _pooled,
    "a narrow weight with too few bytes": _narrow,
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_model_is_refused_in_words(preset: type[omb.Preset], name: str) -> None:
    with pytest.raises(omb.OnnxMultiBackendError):
        preset.prepare(ODD[name]())


def test_the_log_can_be_read_for_an_odd_model(ort_cpu: type[omb.Preset], caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "onnx_multi_backend"), pytest.raises(omb.OnnxMultiBackendError):
        ort_cpu.prepare(_short())


def test_a_sparse_default_runs_or_is_asked_for(engine: type[omb.Preset]) -> None:
    sparse = SparseTensorProto(
        values=numpy_helper.from_array(np.float32([1, 2]), "w"),
        indices=numpy_helper.from_array(np.array([0, 1])),
        dims=[4],
    )
    made = models.one_node("Add", [models.tensor("x", [4]), models.tensor("w", [4])], [models.tensor("y", [4])])
    made.graph.sparse_initializer.append(sparse)
    prepared, x = engine.prepare(made), np.ones(4, np.float32)
    np.testing.assert_array_equal(prepared.run({"x": x, "w": x})[0], [2, 2, 2, 2])
    if engine.name == "Openvino":
        with pytest.raises(omb.UnsupportedModelError, match="default of w"):
            prepared.run({"x": x})
    else:
        np.testing.assert_array_equal(prepared.run({"x": x})[0], [2, 3, 1, 1])


class _Raising:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise self._error


@pytest.mark.parametrize("error", [KeyError("k"), ZeroDivisionError(), OSError("gone"), StopIteration()])
def test_what_an_array_of_the_users_raises_is_an_input_error(ort_cpu: type[omb.Preset], error: Exception) -> None:
    with pytest.raises(omb.InputError, match="numpy cannot read this _Raising") as raised:
        ort_cpu.prepare(models.relu()).run(_Raising(error))
    assert raised.value.__cause__ is error


def test_odd_options_are_option_errors(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.OptionError, match="precision is one of"):
        openvino.prepare(models.relu(), precision=np.zeros(2))
    with pytest.raises(omb.OptionError, match="null byte"):
        openvino.prepare(models.relu(), cache_dir="a\0b")


@pytest.mark.parametrize(
    ("operator", "kind"),
    [("Neg", np.float32), ("Sign", np.float16), ("Celu", np.float32)],  # as it is; rewritten on OrtCpu; on Openvino
)
def test_a_dimension_whose_name_is_not_utf8(engine: type[omb.Preset], operator: str, kind: type) -> None:
    elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    given, made = models.tensor("x", ["NAME", 3], elem_type), models.tensor("y", None, elem_type)
    data = models.one_node(operator, [given], [made]).SerializeToString()
    try:
        rep = engine.prepare(data.replace(b"NAME", b"N\xdfME"))
    except omb.OnnxMultiBackendError:
        return
    assert rep.get_inputs()[0].shape == ("N\ufffdME", 3)
    x = np.ones((2, 3), kind)
    np.testing.assert_array_equal(rep.run([x])[0], -x if operator == "Neg" else x)


def test_a_node_without_outputs_that_is_rewritten(ort_cpu: type[omb.Preset]) -> None:
    """Of an opset that has no such operator, so that ONNX's checker asks for no outputs; the other one is rewritten."""
    mask = ["q", "k", "v", "m", "", "", "n"]
    nodes = [helper.make_node("Attention", mask, ["y"]), helper.make_node("Attention", mask, [])]
    heads = [models.tensor(name, [2, 2, 4, 8]) for name in "qkv"]
    inputs = [*heads, models.tensor("m", [2, 1, 4, 4]), models.tensor("n", [2], TensorProto.INT64)]
    made = models.model(nodes, inputs, [models.tensor("y", None)], opsets={"": 4})
    with pytest.raises(omb.InvalidModelError, match="No Op registered for Attention"):
        ort_cpu.prepare(made)


def test_a_pool_of_too_few_pads_is_refused_in_words(engine: type[omb.Preset]) -> None:
    made = models.one_node(
        "MaxPool",
        [models.tensor("x", [1, 1, 4, 4])],
        [models.tensor("y", None)],
        ceil_mode=1,
        kernel_shape=[2, 2],
        pads=[1],
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        engine.prepare(made)


def test_an_input_of_no_type_is_refused_in_words(openvino: type[omb.Preset]) -> None:
    """OpenVINO compiles it, and makes no request for a run."""
    made = models.model(
        [models.node("Equal", ["x", "z"], ["y"])],
        [models.tensor("x", [2], TensorProto.UNDEFINED), models.tensor("z", [2])],
        [models.tensor("y", [2], TensorProto.BOOL)],
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(made).run([np.ones(2, np.float32), np.ones(2, np.float32)])


def test_a_convolution_is_not_taken_for_one_of_short_images_for_the_name_of_a_constant(
    preset: type[omb.Preset],
) -> None:
    """The tensor in a Constant of a function has the name of the image, and fewer axes."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[1, 1, 2, 2] x) => (float[1, 1, 2, 2] y)
        <float[1, 1, 1, 1] w = {2}> { c = Conv (x, w) y = local.f (c) }
        <domain: "local", opset_import: ["": 17]> f (a) => (b) { k = Constant <value = float[1] x {1}> () b = Add (a, k) }"""
    )
    image = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    np.testing.assert_array_equal(preset.prepare(model).run([image])[0], 2 * image + 1)


def test_nor_for_that_of_another_branch(ort_cpu: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[1, 1, 2, 2] x, bool b) => (float[1, 1, 2, 2] y) <float[1, 1, 1, 1] w = {2}> {
            y = If (b) <then_branch = t () => (float[1, 1, 2, 2] p) { c = Constant <value = float[1] {3}> () p = Mul (x, c) },
                        else_branch = e () => (float[1, 1, 2, 2] q) { c = Relu (x) q = Conv (c, w) }> }"""
    )
    image = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    np.testing.assert_array_equal(ort_cpu.prepare(model).run([image, np.array(False)])[0], 2 * image)


@pytest.mark.parametrize("size", [-1, -(2**31), -(2**62)])
def test_a_size_below_0_of_what_names_places(preset: type[omb.Preset], size: int) -> None:
    """onnx's inference, by itself too, ends the process; ONNX Runtime takes the size for one that is not known."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 13]> g (float[2, 2] x, int64[n, 7] i) => (float[m] y) { z = GatherND (x, i) y = Mystery (z) }"""
    )
    model.graph.input[1].type.tensor_type.shape.dim[1].dim_value = size
    with pytest.raises(omb.OnnxMultiBackendError):
        preset.prepare(model)
    model.graph.node[1].op_type = "Relu"
    try:
        made = preset.prepare(model).run([np.float32([[1, 2], [3, 4]]), np.array([[1, 0], [0, 1]])])
    except omb.OnnxMultiBackendError:
        assert "Openvino" in preset.name
    else:
        np.testing.assert_array_equal(made[0], [3, 2])


def test_a_cast_like_nothing_is_refused_in_words(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { a = CastLike (x) y = Relu (a) }"""
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        preset.prepare(model)


@pytest.mark.parametrize("scale", [np.inf, np.nan, -1.0])
def test_a_scale_that_is_no_size_is_refused_in_words(preset: type[omb.Preset], scale: float) -> None:
    model = models.model(
        [models.node("Resize", ["x", "", "s"], ["y"], mode="linear")],
        [models.tensor("x", [1, 2, 4, 4], TensorProto.INT32)],
        [models.tensor("y", None, TensorProto.INT32)],
        initializers={"s": np.float32([1, 1, 2, scale])},
        opsets={"": 18},
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        preset.prepare(model).run([np.ones((1, 2, 4, 4), np.int32)])
