# SPDX-License-Identifier: Apache-2.0
"""A Gather along an axis that was inserted: OpenVINO left that axis out in open shapes."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


def made_of(nodes: str, kind: str = "float", shape: str = "a, 3, b", opset: int = 18) -> onnx.ModelProto:
    constants = """<int64[1] zero = {0}, int64[1] one = {1}, int64[1] last = {-1}, int64[2] both = {-1, 0}, int64 number = {0},
        bool[1] true = {1}>"""
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": {opset}]> g ({kind}[{shape}] x) => ({kind}[k] y) {constants} {{ {nodes} }}'
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    read = {name for node in made.graph.node for name in node.input}
    kept = [tensor for tensor in made.graph.initializer if tensor.name in read]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    return made


def check(preset: type[omb.Preset], made: onnx.ModelProto, axis: int, indices: object, kind: type = np.float32) -> None:
    prepared = preset.prepare(made)
    for shape in ((2, 3, 4), (5, 3, 1), (2, 3, 4)):
        x = (np.arange(np.prod(shape)) % 7).reshape(shape).astype(kind)
        right = np.take(np.expand_dims(x, axis), indices, axis)
        (got,) = prepared.run([x])
        assert got.shape == right.shape
        np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("shape", ["a, 3, b", "a, b, c"])
@pytest.mark.parametrize(("name", "indices"), [("zero", [0]), ("last", [-1]), ("both", [-1, 0]), ("number", 0)])
def test_indices(preset: type[omb.Preset], name: str, indices: object, shape: str) -> None:
    nodes = f"u = Unsqueeze (x, one) y = Gather <axis = 1> (u, {name})"
    check(preset, made_of(nodes, shape=shape), 1, indices)


@pytest.mark.parametrize(
    ("nodes", "axis"),
    [
        ("u = Unsqueeze (x, zero) y = Gather (u, last)", 0),
        ("u = Unsqueeze (x, last) y = Gather <axis = 3> (u, zero)", 3),
        ("u = Unsqueeze (x, last) y = Gather <axis = -1> (u, zero)", 3),
        ("u = Unsqueeze (x, one) i = Identity (u) c = Cast <to = 1> (i) y = Gather <axis = 1> (c, zero)", 1),
        ("u = Unsqueeze (x, one) y = Compress <axis = 1> (u, true)", 1),
    ],
)
def test_axes(preset: type[omb.Preset], nodes: str, axis: int) -> None:
    check(preset, made_of(nodes), axis, [0])


@pytest.mark.parametrize("opset", [11, 18])
@pytest.mark.parametrize("kind", ["bool", "int64", "float16"])
def test_one_index_of_any_type(preset: type[omb.Preset], kind: str, opset: int) -> None:
    inserted = "u = Unsqueeze (x, one)" if opset > 12 else "u = Unsqueeze <axes = [1]> (x)"
    check(
        preset, made_of(f"{inserted} y = Gather <axis = 1> (u, zero)", kind, opset=opset), 1, [0], np.dtype(kind).type
    )


def test_fixed_shapes_stay_as_they_are(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(made_of("u = Unsqueeze (x, one) y = Gather <axis = 1> (u, both)", shape="2, 3, 4"))
    assert not prepared.adaptations
    assert prepared.run([np.ones((2, 3, 4), np.float32)])[0].shape == (2, 2, 3, 4)


@pytest.mark.parametrize("lists", [([0], [-1, 0]), ([-1, 0], [0])])
def test_a_name_that_stands_for_two_lists(openvino: type[omb.Preset], lists: tuple[list[int], list[int]]) -> None:
    """In the one branch it is one index, in the other two: neither Gather is left out."""
    branch = "{0} () => (float[p, q, r] {0}y) {{ {0}u = Unsqueeze (x, one) {0}y = Gather <axis = 1> ({0}u, i) }}"
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]> g (float[a, b] x, bool which) => (float[p, q, r] y) <int64[1] one = {{1}}> {{
        y = If (which) <then_branch = {branch.format("then")}, else_branch = {branch.format("other")}> }}"""
    )
    for attribute in made.graph.node[0].attribute:
        indices = lists[attribute.name != "then_branch"]
        attribute.g.initializer.append(onnx.numpy_helper.from_array(np.int64(indices), "i"))
    prepared = openvino.prepare(made)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for which in (True, False, True):
        (got,) = prepared.run([x, np.array(which)])
        np.testing.assert_array_equal(got, np.take(x[:, None], lists[not which], 1))
