# SPDX-License-Identifier: Apache-2.0
"""Every form that the tables of defects call wrong is still wrong: an engine that has mended one is noticed here.

Each is given to its engine as it stands, and the result is held to what ONNX asks for. Once a test fails, give the
table's entry the releases (or processors) that it holds for: ``Only({"openvino": "<2027"}, _resize)``.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import expected
from backend_test.unit.adapt.test_defective import (
    REWRITTEN_ON_OPENVINO,
    WRONG_ON_OPENVINO,
    feeds,
    floats,
    lstm,
    single,
)
from onnx_multi_backend.adapt.defective import defective_nodes
from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines.defect import FindDefect, Only, Several, find
from onnx_multi_backend.engines.openvino import defects as of_openvino
from onnx_multi_backend.engines.openvino import exports
from onnx_multi_backend.engines.openvino import form_defects as of_forms
from onnx_multi_backend.engines.openvino import product_defects as of_products
from onnx_multi_backend.engines.openvino import quantized_defects as of_quantized
from onnx_multi_backend.engines.openvino import resize_defects as of_resize
from onnx_multi_backend.engines.openvino import step_defects as of_steps
from onnx_multi_backend.engines.openvino import window_defects as of_windows
from onnx_multi_backend.engines.ort import defects as of_ort
from onnx_multi_backend.engines.ort import resize_defects
from onnx_multi_backend.engines.ort.openvino_ep.among_others import among_others
from onnx_multi_backend.host.processor import current


def recurrent(op_type: str) -> ModelProto:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op_type]
    weights = [floats(1, gates * 3, 4), floats(1, gates * 3, 3)]
    return single(op_type, [(3, 2, 4), *weights], opset=14, outputs=1, hidden_size=3, layout=1)


def sequences() -> ModelProto:
    weights = [floats(1, 9, 4), floats(1, 9, 3)]
    model = single("GRU", [(3, 2, 4), *weights, None, np.int32([3, 1])], opset=14, hidden_size=3)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "steps"
    return model


def attention(*inputs: Any, opset: int = 24, outputs: int = 1, **attributes: Any) -> ModelProto:
    return single("Attention", inputs, opset=opset, outputs=outputs, **attributes)


def pool(op_type: str) -> ModelProto:
    window = {"kernel_shape": [2, 2], "dilations": [2, 2], "auto_pad": "SAME_UPPER"}
    return single(op_type, [(1, 1, 5, 5)], opset=22, **window)


def parsed(opset: int, graph: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {graph}')


_HEADS = (1, 2, 3, 4)

FORMS: dict[str, dict[str, ModelProto]] = {
    "openvino": {
        "Clip of a size from below": parsed(
            18, "(float[n] x) => (int64[1] y) <int64 low = {-2}> { s = Shape (x) y = Clip (s, low) }"
        ),
        **{name: model for name, (model, _) in (WRONG_ON_OPENVINO | REWRITTEN_ON_OPENVINO).items()},
        "coupled gates": lstm(input_forget=1),
        "Attention in a window": attention(_HEADS, _HEADS, _HEADS, opset=27, left_window_size=1, right_window_size=0),
        "causal Attention behind a past": attention(
            (1, 2, 2, 4), _HEADS, _HEADS, None, (1, 2, 2, 4), (1, 2, 2, 4), outputs=3, is_causal=1
        ),
        "TopK of equal values": parsed(
            13, "(float[3, 16] x) => (float[3, 12] v, int64[3, 12] y) <int64[1] k = {12}> { v, y = TopK (x, k) }"
        ),
        "QuantizeLinear to a type that it names": parsed(
            21, "(float[4] x) => (int8[4] y) <float s = {0.1}> { y = QuantizeLinear <output_dtype = 3> (x, s) }"
        ),
        "Conv of constants": parsed(
            18,
            """(float[1] x) => (float[1, 1, 1, 1] y) <float[1, 1, 2, 2] i = {1, 2, 3, 4}, float[1, 1, 2, 2] w = {5, 6, 7, 8}> {
            y = Conv (i, w, x) }""",
        ),
        "IsInf behind an operator on elements": parsed(
            20, "(float[n] x) => (bool[m] y) <float zero = {0}> { d = Div (x, zero) y = IsInf (d) }"
        ),
        "ReduceMean of three channels": parsed(
            13,
            """(float[3, 3, 5, 5] x) => (float[1, 3, 1, 1] y) {
            v = MaxPool <kernel_shape = [2, 2]> (x) y = ReduceMean <axes = [0, 2, 3]> (v) }""",
        ),
        "RNN with layout=1": recurrent("RNN"),
        "GRU with layout=1": recurrent("GRU"),
        "LSTM with layout=1": recurrent("LSTM"),
        "GRU of two directions with other activations": single(
            "GRU",
            [(3, 2, 4), (2, 9, 4), (2, 9, 3)],
            opset=14,
            outputs=2,
            hidden_size=3,
            direction="bidirectional",
            activations=["Sigmoid", "Tanh", "Sigmoid", "Relu"],
        ),
        "Loop of no steps whose steps would all make the same": parsed(
            19,
            """(float[2] x) => (float[2] y) <int64 n = {0}, bool go = {1}> {
            y = Loop (n, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
                d = Identity(c) w = Sigmoid(x) }> }""",
        ),
        "SequenceInsert at a position known only at run time": parsed(
            18,
            """(float[2] x, int64 p) => (int64 y) {
            s = SequenceConstruct (x, x)
            i = SequenceInsert (s, x, p)
            y = SequenceLength (i) }""",
        ),
        "Loop that may make no step, with a state that is not read": parsed(
            19,
            """(int64 n, float[2] x) => (float[2] y) <bool go = {1}> {
            y = Loop (n, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) {
                d = Identity(c) w = Sigmoid(x) }> }""",
        ),
        "Loop whose rows are those of the run before": parsed(
            19,
            """(int64 n, float[2] x) => (float[a, 2] rows, float[2] y) <bool go = {1}> {
            y, rows = Loop (n, go, x) <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w, float[2] r) {
                d = Identity(c) w = Add (v, v) r = Neg (v) }> }""",
        ),
        "Scan that passes a slice on": parsed(
            19,
            """(float[3, 2] x) => (float[3, 2] y) {
            y = Scan <num_scan_inputs = 1, body = b (float[2] v) => (float[2] w) { w = Max (v) }> (x) }""",
        ),
        "Scan that makes the same at every step": parsed(
            19,
            """(float[2] s, float[3, 2] x) => (float[2] t, float[3, 2] y) {
            t, y = Scan <num_scan_inputs = 1, body = b (float[2] u, float[2] v) => (float[2] w, float[2] z) {
                w = Identity(u) z = Add(u, u) }> (s, x) }""",
        ),
        "Scan that reads nothing of a step": parsed(
            19,
            """(float[2] s, float[3, 2] x) => (float[2] t) <float[2] two = {2, 2}> {
            t, y = Scan <num_scan_inputs = 1, body = b (float[2] u, float[2] v) => (float[2] w, float[2] z) {
                w = Mul(u, two) z = Neg(v) }> (s, x) }""",
        ),
        "Resize along an axis whose length stays": single(
            "Resize", [(1, 1, 4, 4), None, np.float32([1, 1, 1.2, 2])], opset=19, mode="linear"
        ),
        "cubic Resize of many integers": parsed(
            19,
            """(float[1, 1, 2, 4, 4] x) => (int8[a, b, c, d, e] y) <float[5] s = {1, 1, 1, 2, 2}> {
            ten = Constant <value_float = 10.0> ()
            t = Mul (x, ten) i = Cast <to = 3> (t) y = Resize <mode = "cubic"> (i, , s) }""",
        ),
        "cubic Resize of the first axis too": single(
            "Resize", [(3, 4, 4), None, np.float32([2, 1, 2])], opset=19, mode="cubic"
        ),
        "Softsign": single("Softsign", [(2, 3)], opset=22),
        "SpaceToDepth by columns": single(
            "SpaceToDepth", [(1, 2, 4, 4)], opset=onnx.defs.onnx_opset_version(), blocksize=2, mode="CRD"
        ),
        "Conv with a kernel of 1, pads and strides behind another node": parsed(
            13,
            """(float[1, 1, 3, 4] x, float[2, 1, 1, 1] w) => (float[a, b, c, d] y) {
            r = Relu (x) y = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (r, w) }""",
        ),
        "Tile by known repeats of several axes while sizes are open": parsed(
            13, "(float[n, 1, 4, 4] x) => (float[n, b, c, d] y) <int64[4] r = {1, 2, 2, 1}> { y = Tile (x, r) }"
        ),
        "Tile whose repeats are known only at run time": parsed(
            19, "(float[2, 3, 4, 5] x, int64[4] repeats) => (float[a, b, c, d] y) { y = Tile (x, repeats) }"
        ),
        "GRU whose sequences differ in length": sequences(),
        "Gather beyond the data": parsed(
            19,
            """(float[3] x) => (float[1] y) <int64[1] i = {5}> {
            z = Exp (x) y = Gather (z, i) }""",
        ),
        "a constant for each of two columns": parsed(
            19,
            """(float[2, 2] a, float[2, n] b) => (float[2, n] y) <float[2] c = {1, 2}> {
            y = Gemm (a, b, c) }""",
        ),
        "Gemm with a C that counts for nothing": parsed(
            19,
            """(float[2, 2] x, float[2] c) => (float[2, 2] y) <float[2, 2] w = {1, 2, 3, 4}> {
            y = Gemm <beta = 0.0> (x, w, c) }""",
        ),
        "LRN of an even size": single("LRN", [(1, 4, 2, 2)], opset=13, size=2, alpha=0.5),
        "LRN of a bias that is no whole number": single("LRN", [(1, 4, 2, 2)], opset=13, size=3, alpha=0.5, bias=0.5),
        "NonMaxSuppression of boxes that may not overlap": parsed(
            19,
            """(float[1, 3, 4] boxes, float[1, 1, 3] scores) => (int64[n, 3] y) <int64[1] most = {3}> {
            y = NonMaxSuppression (boxes, scores, most) }""",
        ),
        "QuantizeLinear of an unknown shape along axis 0": parsed(
            19,
            """(float[a, b] x) => (int8[a, b] y) <float[2] s = {0.1, 0.3}, int8[2] z = {-8, 10}> {
            y = QuantizeLinear <axis = 0> (x, s, z) }""",
        ),
        "QuantizeLinear by a scale near the largest float32": parsed(
            21,
            """(float[n, 3] x) => (uint8[n, 3] y) <float s = {1e36}, uint8 z = {255}> { y = QuantizeLinear (x, s, z) }""",
        ),
        "DequantizeLinear of a zero point beyond float32": parsed(
            21,
            """(uint8[n, 3] x) => (float[n, 3] y) <float s = {2e36}, uint8 z = {255}> { y = DequantizeLinear (x, s, z) }""",
        ),
        "QuantizeLinear to 16 bits": parsed(
            21,
            """(float[2, 3] x) => (float[2, 3] y) <float s = {0.00001}, uint16 z = {9}> {
            q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) y = Mul (d, x) }""",
        ),
        "Range that runs backwards": parsed(
            19, "(int64 a, int64 b, int64 d) => (int64[n] y) { c = Neg (d) y = Range (a, b, c) }"
        ),
        "HardSigmoid whose beta is zero": single("HardSigmoid", [(2, 3)], opset=13, beta=0.0),
        "Softmax over several axes": single("Softmax", [(2, 3, 4)], opset=11, axis=1),
        "If whose branch changes": parsed(
            19,
            """(float[n, 4] x) => (float[n, 4] y) <float one = {1.0}> {
            c = ReduceMax <keepdims = 0> (x) d = Less (one, c)
            y = If (d) <then_branch = t () => (float[n, 4] p) { p = Exp (x) },
                        else_branch = e () => (float[n, 4] q) { q = Neg (x) }> }""",
        ),
        "If with a scalar in one branch and a list in the other": parsed(
            17,
            """(bool c, float z, float[2] v) => (float[n] y) { y = If (c) <then_branch = t () => (float a) { a = Neg (z) },
            else_branch = e () => (float[2] b) { b = Neg (v) }> }""",
        ),
        "PRelu of slopes that another node makes": parsed(
            17, "(float[n, 3] x, float[n, 3] k) => (float[a, b] y) { s = Sigmoid (k) y = PRelu (x, s) }"
        ),
        "Pad of the axes in another order": parsed(
            18,
            "(float[2, 3] x) => (float[a, b] y) <int64[2] i = {1, 0}, int64[4] p = {1, 0, 0, 0}> { y = Pad (x, p, , i) }",
        ),
        "CenterCropPad of the axes in another order": parsed(
            18, "(float[2, 3] x) => (float[5, 4] y) <int64[2] s = {4, 5}> { y = CenterCropPad <axes = [1, 0]> (x, s) }"
        ),
        "AveragePool with a window beyond the image": single(
            "AveragePool", [(1, 1, 4, 4)], opset=19, ceil_mode=1, kernel_shape=[1, 1], strides=[2, 2]
        ),
        "MaxPool with strides longer than the window and auto_pad": single(
            "MaxPool", [(1, 1, 6)], opset=12, ceil_mode=1, auto_pad="SAME_UPPER", kernel_shape=[1], strides=[2]
        ),
        "AveragePool with strides longer than the window and auto_pad": single(
            "AveragePool", [(1, 1, 6)], opset=19, ceil_mode=1, auto_pad="SAME_UPPER", kernel_shape=[1], strides=[2]
        ),
        "ReduceL1 whose axes are an attribute": single("ReduceL1", [(2, 3, 4)], opset=13, axes=[2]),
        "DequantizeLinear of a scalar by a scale with an axis": parsed(
            19,
            "(int8 x) => (float y) <float[1] s = {0.5}, int8[1] z = {3}> { y = DequantizeLinear <axis = 0> (x, s, z) }",
        ),
        "ReduceL2 of no axes": single("ReduceL2", [(2, 3)], opset=18, noop_with_empty_axes=1),
        "ReduceLogSumExp of 100": parsed(
            18,
            """(float[2, 3] x) => (float[2, 1] y) <float hundred = {100.0}, int64[1] axes = {1}> {
            z = Add (x, hundred) y = ReduceLogSumExp (z, axes) }""",
        ),
        "ReduceLogSumExp of infinite constants": single(
            "ReduceLogSumExp", [np.float32([[1, np.inf], [2, -np.inf]]), np.int64([1])], opset=18
        ),
        "ConvTranspose whose padding follows from its input": parsed(
            13,
            """(float[1, 1, a, b] x) => (float[1, 1, c, d] y) <float[1, 1, 3, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9}> {
            y = ConvTranspose <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, w) }""",
        ),
        "MatMulInteger of a vector": parsed(
            13,
            """(float[2, 3] x) => (int32[2] y) <int8[3] v = {1, -2, 3}, int8[3, 2] m = {1, 2, 3, 4, 5, 6}> {
            y = MatMulInteger (v, m) z = Neg (x) }""",
        ),
        "weights of 16 bits with a scale of float16": parsed(
            21,
            """(float16 s, float16[3] x) => (float16[3] y) <uint16[3] w = {32769, 32771, 40001}, uint16 z = {32768}> {
            v = DequantizeLinear (w, s, z) y = Add (x, v) }""",
        ),
        "blocks along the second axis": parsed(
            21,
            """(float[2, 4] x, float[2, 2] s) => (float[2, 4] y) {
            q = Cast <to = 3> (x) y = DequantizeLinear <axis = 1, block_size = 2> (q, s) }""",
        ),
        "weights that are scaled at run time": parsed(
            21,
            """(float[2, 3] x, float s) => (float[2, 2] y) <int8[3, 2] w = {1, 2, 3, 4, 5, 6}> {
            v = DequantizeLinear (w, s) y = MatMul (x, v) }""",
        ),
        "NonZero of what a Cast makes 0": parsed(
            13, "(float[2, 3] x) => (int64[2, n] y) { i = Cast <to = 6> (x) y = NonZero (i) }"
        ),
        "Shrink of integers": parsed(
            19, "(float[2, 3] x) => (int32[2, 3] y) { i = Cast <to = 6> (x) y = Shrink <bias = 0.5> (i) }"
        ),
        "BitShift of a scalar by a scalar": parsed(
            18, """() => (uint16 y) <uint16 c = {12}, uint16 d = {2}> { y = BitShift <direction = "RIGHT"> (c, d) }"""
        ),
        "BitShift beyond int32": parsed(
            18,
            """(float[2] x) => (uint64[2] y) <uint64 a = {40}> {
            i = Cast <to = 13> (x) y = BitShift <direction = "LEFT"> (i, a) }""",
        ),
        "MaxPool with Indices whose padding follows from its input": parsed(
            18,
            """(float[1, 1, a, b] x) => (float[1, 1, c, d] y, int64[1, 1, c, d] i) {
            y, i = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3, 3]> (x) }""",
        ),
        "MaxPool with Indices that count down the columns": parsed(
            18,
            """(float[1, 1, 4, 5] x) => (float[1, 1, 3, 4] y, int64[1, 1, 3, 4] i) {
            y, i = MaxPool <kernel_shape = [2, 2], storage_order = 1> (x) }""",
        ),
        "Pad with a value known at run time": parsed(
            18, "(float[2, 3] x, float v) => (float[3, 5] y) <int64[4] p = {1, 0, 0, 2}> { y = Pad (x, p, v) }"
        ),
        "MaxPool with Indices of 8 bits": parsed(
            18,
            """(float[1, 1, 6] x) => (uint8[1, 1, 3] y, int64[1, 1, 3] i) {
            q = Cast <to = 2> (x) y, i = MaxPool <kernel_shape = [2], strides = [2]> (q) }""",
        ),
        "QLinearConv of constants": parsed(
            19,
            """() => (uint8[1, 1, 1, 4] y) <uint8[1, 1, 1, 4] x = {0, 20, 120, 255}, float s = {0.5}, uint8 zx = {33},
            uint8[1, 1, 1, 1] w = {3}, float t = {0.25}, uint8 zw = {118}, float v = {20}, uint8 zy = {138}> {
            y = QLinearConv (x, s, zx, w, t, zw, v, zy) }""",
        ),
        "QLinearConv with scales of channels": parsed(
            19,
            """(float[1, 2, 3, 3] x) => (float[1, 2, 2, 2] y) <float s = {0.03}, uint8 z = {7}, float[2] t = {0.01, 0.05},
            int8[2] v = {0, 0}, int8[2, 2, 2, 2] w = {9, -5, 7, 30, -4, 6, 17, 2, 8, -3, 5, -40, 6, 7, 8, 9}> {
            q = QuantizeLinear (x, s, z) c = QLinearConv (q, s, z, w, t, v, s, z) y = DequantizeLinear (c, s, z) }""",
        ),
        "Cast to powers of two": onnx.helper.make_model(
            onnx.helper.make_graph(
                [onnx.helper.make_node("Cast", ["x"], ["c"], to=onnx.TensorProto.FLOAT8E8M0, round_mode="down")]
                + [onnx.helper.make_node("Cast", ["c"], ["y"], to=onnx.TensorProto.FLOAT)],
                "powers",
                [models.tensor("x", [4])],
                [models.tensor("y", [4])],
            ),
            opset_imports=[onnx.helper.make_opsetid("", 24)],
            ir_version=11,
        ),
        "Unsqueeze of no axes": parsed(
            18, "(float[2, 3] x) => (float[2, 3] y) <int64[0] axes = {}> { y = Unsqueeze (x, axes) }"
        ),
        "LpPool with a window that ends beyond the image": single(
            "LpPool", [(1, 1, 4)], opset=18, ceil_mode=1, kernel_shape=[3], strides=[3]
        ),
        "Unique along the second axis": single("Unique", [(2, 3)], opset=11, axis=1),
        "Unique of 8 bits along an axis": parsed(
            18,
            "(float[6] x) => (int8[n] y, int64[n] i) { c = Cast <to = 3> (x) y, i = Unique <axis = 0, sorted = 0> (c) }",
        ),
        "Unique in the order of occurrence": single("Unique", [(6,)], opset=11, sorted=0),
    },
    "ort": {
        "Attention's masked product": attention(
            _HEADS, _HEADS, _HEADS, outputs=4, is_causal=1, qk_matmul_output_mode=2
        ),
        "a mask beside softcap": attention(_HEADS, _HEADS, _HEADS, (3, 3), opset=23, softcap=0.5),
        "a causal mask beside padded keys": attention(
            _HEADS, _HEADS, _HEADS, None, None, None, np.int64([2]), is_causal=1
        ),
        "a causal mask on a single query": attention((1, 2, 1, 4), _HEADS, _HEADS, opset=23, is_causal=1),
        "AveragePool, dilated": pool("AveragePool"),
        "LpPool, dilated": pool("LpPool"),
        "MaxPool, dilated": pool("MaxPool"),
        "Resize of a part of its own size": parsed(
            19,
            """(float[3] x) => (float[a] y) <float[2] roi = {0.25, 0.75}, int64[1] s = {3}> {
            y = Resize <mode = "nearest", coordinate_transformation_mode = "tf_crop_and_resize"> (x, roi, , s) }""",
        ),
        "AveragePool with a window that is left out": parsed(
            19,
            """(float[1, 2, 4] x) => (float[1, 2, k] y, int64[3] s) {
            y = AveragePool <ceil_mode = 1, kernel_shape = [2], strides = [2], pads = [0, 1]> (x) s = Shape (y) }""",
        ),
        "rows of strings": parsed(18, "(string[2, 3] x, int64[2] i) => (string[2, 3] y) { y = Gather (x, i) }"),
    },
}

#: What may end the process, with some releases at least: `test_engine_crashes`, `test_deadly_constants` and `test_rows_of_strings` try it
#: in processes of their own.
DEADLY = {
    "pads that only a run tells may crop more than there is, which ends the process",
    "of a constant without elements it is refused, or ends the process",
    "a scan output of strings is copied byte by byte, which ends the process",
    "strings are moved into a scan output: a value that it passes on is empty afterwards",
    "alone, with an empty list of axes, it ends the process",
    "a condition that is known to select nothing ends the process",
    "a known condition on what has no elements ends the process",
    "constant bounds along axes known only at run time end the process",
    "a OneHot of no indices ends the process",
    "of images without pixels, other memory is read",
    "a zero point of what is chosen that only a run tells ends the process",
    "an axis counted from the end ends the process",
    "a Scan whose body reads computed values from outside may end the process",
    "a layer without steps, batch or features ends the process",
    "an Expand to a shape without elements is left out, or ends the process",
    "constant indices without elements end the process",
    "indices beyond the data are read anyway, which may end the process",
    "linear interpolation of more than five axes is refused when it runs, or ends the process",
    "more is cropped than there is, which may end the process",
    "of one channel, a single column is written to other places, which may end the process",
}

#: What is wrong in some processes alone; `test_products_of_two_constants_are_taken_for_one` tells when the first is mended.
BY_CHANCE = {
    "of a scale known only at run time, both ends of the range may be taken for one",
    "of sums of nothing, memory that was never written is the result",
    "of images without pixels, memory that was never written is the result",
    "of a signal without elements the result is not written",
    "without keys the result is not written",
}

#: What ONNX's evaluator does not run: `test_broadcast_axes`, `test_resize_axes`, `test_told_by_shapes` and `test_quantized_at_run_time` know the results.
NOT_EVALUATED = {
    "of scales or zero points that only a run tells the product is any number",
    "tensors of a number that only a run tells count as one",
    "an axis counted from the end is not resized where an aspect ratio is kept",
    "pads for an output_shape that differ from side to side are taken for one another",
    "the axis that the second operand is aligned with is ignored",
}

#: What is given to a form, run after run, where random numbers will not do.
FEEDS: dict[str, list[list[Any]]] = {
    "If with a scalar in one branch and a list in the other": [[np.array(True), np.float32(1), floats(2)]],
    "DequantizeLinear of a scalar by a scale with an axis": [[np.array(6, np.int8)]],
    "ReduceL2 of no axes": [[np.float32([[1, -2, 3], [-4, 5, -6]])]],
    "rows of strings": [[np.array([list("abc"), list("def")], object), np.array([1, 0])]],
    "a constant for each of two columns": [[floats(2, 2), floats(2, 2)]],
    "Gemm with a C that counts for nothing": [[floats(2, 2), np.float32([np.nan, np.inf])]],
    "NonMaxSuppression of boxes that may not overlap": [
        [np.float32([[[0, 0, 1, 1], [5, 5, 6, 6], [5, 5, 6, 7]]]), np.float32([[[0.9, 0.8, 0.7]]])],
    ],
    "TopK of equal values": [[np.tile(np.float32([3, 1, 3, 2, 3, 1, 0, 0, 3, 3, 1, 1, 2, 2, 2, 0]), (3, 1))]],
    "QuantizeLinear of an unknown shape along axis 0": [[floats(2, 3) * 9]],
    "Loop that may make no step, with a state that is not read": [[np.array(0), floats(2)]],
    "SequenceInsert at a position known only at run time": [[floats(2), np.array(1)]],
    "Loop whose rows are those of the run before": [[np.array(n), floats(2)] for n in (3, 0)],
    "Range that runs backwards": [[np.array(1), np.array(5), np.array(2)]],
    "weights of 16 bits with a scale of float16": [[np.float16(1), np.zeros(3, np.float16)]],
    "blocks along the second axis": [[np.float32([[1, 2, 3, 4], [5, 6, 7, 8]]), np.float32([[1, 2], [3, 4]])]],
    "weights that are scaled at run time": [[floats(2, 3), np.float32(x)] for x in (0.5, 0.25, 0.5)],
    "NonZero of what a Cast makes 0": [[np.float32([[0.3, 1, 0], [-0.7, 2, 0.99]])]],
    "Resize of a part of its own size": [[np.float32([1, 2, 3])]],
    "Cast to powers of two": [[np.float32([1.1, 1.6, 2, 700])]],
    "Shrink of integers": [[np.float32([[-3, -2, -1], [1, 2, 3]])]],
    "BitShift beyond int32": [[np.float32([1, 3])]],
    "MaxPool with Indices of 8 bits": [[np.float32([[[0, 0, 0, 0, 0, 3]]])]],
    "QuantizeLinear by a scale near the largest float32": [[np.float32([[0, -1e37, -1e38]])]],
    "DequantizeLinear of a zero point beyond float32": [[np.uint8([[255, 250, 240]])]],
    "QuantizeLinear to a type that it names": [[np.float32([-20, -1, 0.3, 20])]],
    "Conv of constants": [[np.float32([x])] for x in (2, 3, 2)],
    "Unique along the second axis": [[np.float32([[0, 0, 0], [0, 1, 1]])]],
    "Unique of 8 bits along an axis": [[np.float32([3, 1, 3, 2, 1, 5])]],
    "ReduceMean of three channels": [[floats(3, 3, 5, 5) * x] for x in (1, 3, 1)],
    "If whose branch changes": [[np.full((2, 4), x, np.float32)] for x in (2, 0.5, 2)],
}

PRESETS = {"openvino": "Openvino", "ort": "OrtCpu", "ort_openvino": "OrtOpenvino"}

#: OpenVINO in onnxruntime-openvino 1.24.1.
INSIDE = {"openvino": "2025.4.1"}
CASES = [
    pytest.param(engine, form, id=f"{engine}: {form}")
    for engine, forms in (*FORMS.items(), ("ort_openvino", FORMS["openvino"]))
    for form in forms
]


def tables(engine: str) -> Mapping[str, FindDefect]:
    return of_ort.DEFECTS if engine == "ort" else of_openvino.DEFECTS


def parts(entry: FindDefect, when: Mapping[str, str]) -> Iterator[tuple[Mapping[str, str], FindDefect]]:
    """The defects of an entry, each with where it holds."""
    if isinstance(entry, Only):
        yield from parts(entry.defect, {**when, **entry.when})
    elif isinstance(entry, Several):
        for defect in entry.defects:
            yield from parts(defect, when)
    else:
        yield when, entry


class Table(NamedTuple):
    """A table of defects, asked about every node wherever its entries hold."""

    entries: Mapping[str, FindDefect]

    def find_defect(self, site: Site) -> Defect | None:
        entry = self.entries.get(site.op_type)
        found_defects = [defect(site) for _, defect in parts(entry, {})] if entry else []
        return next(
            (defect for defect in found_defects if defect is not None and defect.wrong),
            next(filter(None, found_defects), None),
        )


class Held(NamedTuple):
    """A table of defects, asked about every node as here, or as with other releases."""

    entries: Mapping[str, FindDefect]
    inside: Mapping[str, str] | None

    def find_defect(self, site: Site) -> Defect | None:
        entry = self.entries.get(site.op_type)
        return find(entry, site, self.inside) if entry else None


#: The files of OpenVINO's table.
OF_OPENVINO = [of_openvino, of_forms, of_products, of_quantized, of_resize, of_steps, of_windows]


def told(engine: str, model: ModelProto) -> set[str]:
    """What the table calls wrong of a model."""
    found = defective_nodes(model, Table(tables(engine)), lambda node, facts: True)  # type: ignore[arg-type]
    return {d.defect.words for d in found if d.defect.wrong}


def written(*modules: ModuleType) -> set[str]:
    """The words of every defect that modules may call wrong."""
    trees = [ast.parse(inspect.getsource(module)) for module in modules]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found_defects = [call for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Defect"]
    return {ast.literal_eval(defect.args[0]) for defect in found_defects if "wrong" in {k.arg for k in defect.keywords}}


@pytest.mark.parametrize(("engine", "modules"), [("openvino", OF_OPENVINO), ("ort", [of_ort, resize_defects])])
def test_every_form_that_a_table_calls_wrong_is_tried(engine: str, modules: list[ModuleType]) -> None:
    words = [told(engine, model) for model in FORMS[engine].values()]
    assert all(words), "a form of the list that no table calls wrong"
    assert set().union(*words) == written(*modules) - DEADLY - BY_CHANCE - NOT_EVALUATED


def test_products_of_two_constants_are_taken_for_one(openvino: type[omb.Preset]) -> None:
    """What is wrong of a QuantizeLinear in one process of fifty is wrong of products in one shape of fifty."""
    sizes = range(1, 121)
    inputs = ", ".join(f"float[{n}] x{n}" for n in sizes)
    outputs = ", ".join(f"float[{n}] y{n}, float[{n}] z{n}" for n in sizes)
    nodes = " ".join(f"y{n} = Mul (x{n}, low) z{n} = Mul (x{n}, high)" for n in sizes)
    model = parsed(18, f"({inputs}) => ({outputs}) <float low = {{-128}}, float high = {{127}}> {{ {nodes} }}")
    prepared = openvino.prepare(model, adapt=False)
    results = prepared.run([np.full(n, 0.5, np.float32) for n in sizes])
    assert {float(result[0]) for result in results[::2]} != {-64.0} or {float(r[0]) for r in results[1::2]} != {63.5}, (
        "OpenVINO has mended this: say which releases `quantized_at_run_time` holds for"
    )


def near(one: Any, other: Any) -> bool:
    if np.asarray(one).dtype == object:
        return np.array_equal(one, other)
    return np.allclose(one, other, rtol=1e-3, atol=1e-4, equal_nan=True)


#: Operators that ONNX's reference evaluator has no such form of, or computes otherwise.
BY_ONNX_RUNTIME = {"AveragePool", "GRU", "LRN", "LSTM", "Loop", "NonMaxSuppression", "Softmax"}


def correct(model: ModelProto, values: list[np.ndarray]) -> list[Any]:
    """What ONNX's reference evaluator computes, or ONNX Runtime."""
    if model.graph.node[0].op_type not in BY_ONNX_RUNTIME:
        return expected(model, *values)
    pytest.importorskip("onnxruntime")
    return list(omb.OrtCpuBackend.prepare(model).run(values))


@pytest.mark.parametrize(("engine", "form"), CASES)
def test_a_form_that_is_called_wrong_is_wrong(request: pytest.FixtureRequest, engine: str, form: str) -> None:
    model = FORMS["openvino" if engine == "ort_openvino" else engine][form]
    preset: type[omb.Preset] = request.getfixturevalue(
        {"ort": "ort_cpu", "ort_openvino": "openvino_ep"}.get(engine, engine)
    )
    inside = INSIDE if engine == "ort_openvino" else None
    found = defective_nodes(model, Held(tables(engine), inside), lambda node, facts: True)  # type: ignore[arg-type]
    wrong = {d.node.op_type for d in found if d.defect.wrong}
    if not wrong:
        pytest.skip(f"wrong only with other releases or processors, and this is {current()}")
    runs = FEEDS.get(form) or [feeds(model)]
    rights = [[None]] if form == "Gather beyond the data" else [correct(model, values) for values in runs]
    if engine == "ort_openvino":
        model, count = among_others(model, 4), len(model.graph.input)
        runs = [[*values, *[np.zeros(1, np.float32)] * (len(model.graph.input) - count)] for values in runs]
    try:
        prepared = preset.prepare(model, adapt=False)
    except omb.UnsupportedModelError as refused:
        pytest.skip(f"refused: {refused}")
    placed = {node.op_type for node in prepared.placement() if node.provider != "CPUExecutionProvider"}
    if engine == "ort_openvino" and not wrong & placed:
        pytest.skip("left to the CPU provider")
    results = [(list(prepared.run(values))[: len(right)], right) for values, right in zip(runs, rights, strict=True)]
    assert any(
        r is None  # an error is right
        or g.shape != r.shape
        or not near(g, r)
        for got, right in results
        for g, r in zip(got, right, strict=True)
    ), f"{PRESETS[engine]} has mended this form: say in its table which releases compute it wrongly"


@pytest.mark.parametrize(("when", "refused"), [({"openvino": ">=1"}, True), ({"openvino": "<1"}, False)])
def test_a_form_is_refused_only_where_it_is_wrong(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, when: dict[str, str], refused: bool
) -> None:
    monkeypatch.setitem(of_openvino.DEFECTS, "LSTM", Only(when, of_openvino.DEFECTS["LSTM"]))  # type: ignore[arg-type]
    model, _ = WRONG_ON_OPENVINO["peepholes with clip"]
    assert bool(openvino.compatibility(model)) is not refused


@pytest.mark.parametrize(("when", "kept"), [({"openvino": ">=1"}, True), ({"openvino": "<1"}, False)])
def test_layers_survive_an_export_only_where_that_was_seen(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, when: dict[str, str], kept: bool
) -> None:
    ((_, kinds),) = exports.PROVEN
    monkeypatch.setattr(exports, "PROVEN", ((when, kinds),))
    with nullcontext() if kept else pytest.warns(omb.CacheWarning, match="is not kept"):
        openvino.prepare(models.linear(), cache_dir=tmp_path)
    assert any(tmp_path.glob("openvino/*/model*")) is kept
