# SPDX-License-Identifier: Apache-2.0
"""Flags that are neither 0 nor 1 mean on every preset what they mean to ONNX Runtime's CPU provider without optimizations."""

from __future__ import annotations

import numpy as np
import onnx.parser
import onnx.shape_inference
import pytest
from onnx import ModelProto, helper

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_quantized_neighbours import unoptimized

CONSTANTS = """<int64[1] one = {1}, int64[0] none = {}, int64[3] sizes = {0, 4, 3}, float[4] twice = {1, 1, 2, 2},
    float[1, 8, 2] gates = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, -0.1, -0.2, -0.3, -0.4, -0.5, -0.6},
    float[1, 8, 2] states = {0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0, -0.1, -0.2, -0.3, -0.4, -0.5, -0.6, -0.7, -0.8, -0.9},
    float[1, 6, 2] three = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, -0.1, -0.2},
    float[1, 6, 2] fold = {0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0, -0.1, -0.2, -0.3, -0.4, -0.5},
    float[1, 12] both = {0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.7, -0.1, -0.2, -0.3, -0.4, -0.5},
    float[2, 2] square = {1, 2, 3, 4}, float[0] no = {}, int64 first = {0}>"""
#: Nodes by the input that they read.
NODES = {
    "2, 3, 4": [
        *(
            f"y = Reduce{name} <axes = [1], keepdims = FLAG> (x)"
            for name in ("L1", "L2", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
        ),
        "y = ReduceSum <keepdims = FLAG> (x, one)",
        "y = ReduceSum <noop_with_empty_axes = FLAG> (x, none)",
        "y = ArgMax <axis = 1, keepdims = FLAG> (x)",
        "y = ArgMin <axis = 1, keepdims = FLAG, select_last_index = FLAG> (x)",
        "y, i = TopK <axis = 1, largest = FLAG> (x, one)",
        "y = Trilu <upper = FLAG> (x)",
        "y = IsInf <detect_negative = FLAG> (x)",
        "s = SplitToSequence <axis = 1, keepdims = FLAG> (x) y = SequenceAt (s, first)",
    ],
    "1, 2, 5": [
        "y = MaxPool <kernel_shape = [2], strides = [2], ceil_mode = FLAG> (x)",
        "y = AveragePool <kernel_shape = [2], pads = [1, 1], count_include_pad = FLAG> (x)",
    ],
    "2, 1, 2": [
        "y, h, c = LSTM <hidden_size = 2, input_forget = FLAG> (x, gates, states)",
        "y, h = GRU <hidden_size = 2, linear_before_reset = FLAG> (x, three, fold, both)",
    ],
    "2, 2": ["y = Gemm <transA = FLAG> (x, square)", "y = Gemm <transB = FLAG> (x, square)"],
    "1, 1, 3, 3": ['y = Resize <mode = "cubic", exclude_outside = FLAG> (x, no, twice)'],
}


def _model(node: str, sizes: str) -> ModelProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float y) {CONSTANTS} {{ {node} }}'
    )
    output = model.graph.output[0]
    output.ClearField("type")
    output.CopyFrom(onnx.shape_inference.infer_shapes(model).graph.output[0])
    output.type.tensor_type.ClearField("shape")
    return model


@pytest.mark.parametrize(("sizes", "node"), [(sizes, node) for sizes, nodes in NODES.items() for node in nodes])
@pytest.mark.parametrize("flag", [2, -1])
def test_a_flag(preset: type[omb.Preset], sizes: str, node: str, flag: int) -> None:
    model = _model(node.replace("FLAG", str(flag)), sizes)
    x = np.random.default_rng(0).normal(size=[int(n) for n in sizes.split(",")]).astype(np.float32)
    (made,) = preset.prepare(model, fallback="full").run(x)
    (wanted,) = unoptimized(model, x)
    assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(made.astype(float), wanted.astype(float), rtol=1e-5, atol=1e-5)


def test_what_is_said(openvino: type[omb.Preset]) -> None:
    changes = openvino.prepare(_model("y = ReduceMax <axes = [1], keepdims = 3> (x)", "2, 3, 4")).adaptations
    assert "flags at ReduceMax 'y': keepdims=3 written as 0 (ONNX defines 0 and 1 alone)" in map(str, changes)


def test_in_a_branch(openvino: type[omb.Preset]) -> None:
    branch = _model("y = ReduceMax <axes = [1], keepdims = 2> (x)", "2, 3, 4").graph
    del branch.input[:]
    node = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    value = helper.make_tensor_value_info
    given = [value("c", onnx.TensorProto.BOOL, []), value("x", onnx.TensorProto.FLOAT, [2, 3, 4])]
    graph = helper.make_graph([node], "g", given, [value("z", onnx.TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (made,) = openvino.prepare(model).run([np.array(True), np.ones((2, 3, 4), np.float32)])
    assert made.shape == (2, 4)


def test_onnx_runtime_reads_them_by_itself(ort_cpu: type[omb.Preset]) -> None:
    assert not ort_cpu.prepare(_model("y = ReduceMax <axes = [1], keepdims = 3> (x)", "2, 3, 4")).adaptations


@pytest.mark.parametrize("declared", ["k", "k: int = 2"])
def test_a_flag_of_a_function(openvino: type[omb.Preset], declared: str) -> None:
    given = "" if "=" in declared else " <k = 2>"
    names = f"<{declared}>" if "=" in declared else "<k>"
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 17, "l": 1]> g (float[2, 3, 4] x) => (float[a, b] y) {{ y = l.f{given} (x) }}
        <domain: "l", opset_import: ["": 17]> f {names} (x) => (y) {{ y = ReduceMax <axes = [1], keepdims: int = @k> (x) }}"""
    )
    (made,) = openvino.prepare(model).run([np.ones((2, 3, 4), np.float32)])
    assert made.shape == (2, 4)


@pytest.mark.parametrize("flag", [2, -1])
def test_a_cast_that_saturates_or_not(openvino: type[omb.Preset], flag: int) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 19]> g (float[3] x) => (float[3] y) <float8e4m3fn t = {{1}}> {{
        a = CastLike <saturate = {flag}> (x, t) y = Cast <to = 1> (a) }}"""
    )
    x = np.float32([1e9, -1e9, 2])
    np.testing.assert_array_equal(openvino.prepare(model).run([x])[0], unoptimized(model, x)[0])
