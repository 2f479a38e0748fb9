# SPDX-License-Identifier: Apache-2.0
"""Models that `backend_test.fuzz` has damaged: what the engine refuses is refused with one of our errors."""

from __future__ import annotations

from collections.abc import Callable

import onnx.defs
import pytest
from onnx import ModelProto, TensorProto, parser

import onnx_multi_backend as omb

_HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '


def _damaged(text: str, old: bytes, new: bytes) -> bytes:
    """A model, some bytes of it replaced."""
    data = parser.parse_model(_HEAD + text).SerializeToString()
    assert old in data and len(old) == len(new)
    return data.replace(old, new)


def _of_next_opset(data: bytes) -> bytes:
    model = ModelProto.FromString(data)
    model.opset_import[0].version = onnx.defs.onnx_opset_version() + 1
    return model.SerializeToString()


def _scan() -> ModelProto:
    model = parser.parse_model(
        _HEAD
        + """(float[3, 2] x, float[2] w) => (float[3, 2] y) {
            y = Scan <num_scan_inputs = 1, scan_output_directions = [1],
                      body = b (float[2] row) => (float[2] out) { out = Mul (row, w) }> (x) }"""
    )
    (directions,) = (a for a in model.graph.node[0].attribute if a.name == "scan_output_directions")
    del directions.ints[:]
    return model


def _changed(text: str, change: Callable[[ModelProto], None]) -> bytes:
    """A model, changed in what the parser does not let through."""
    model = parser.parse_model(_HEAD + text)
    change(model)
    return model.SerializeToString()


def _lengthen(model: ModelProto) -> None:
    model.graph.initializer[0].ClearField("int64_data")
    model.graph.initializer[0].raw_data = bytes(43)


def _without_outputs(model: ModelProto) -> None:
    del model.graph.node[0].output[:]


def _of_int4(model: ModelProto) -> None:
    model.graph.node[0].attribute[0].t.data_type = TensorProto.UINT8


MODELS = {
    "axes of two axes": parser.parse_model(
        _HEAD
        + """(float[2, 3] x) => (float[a, b] y) <int64[4] pads = {1, 0, 1, 0}, int64[2, 1] axes = {0, 1}> {
            y = Pad <mode = "wrap"> (x, pads, , axes) }"""
    ).SerializeToString(),
    "no directions": _scan().SerializeToString(),
    "a node's name that is not UTF-8": _damaged(
        "(float[2] x) => (float[2] y) { [nnn] y = ThresholdedRelu (x) }", b"nnn", b"n\xffn"
    ),
    "an operator that is not UTF-8, behind an unknown one": _damaged(
        "(float[2] x) => (float[2] y) { u = Frobnicate (x) y = Relu (u) }", b"Relu", b"R\xfflu"
    ),
    "an operator that is not UTF-8, of a newer opset": _of_next_opset(
        _damaged("(float[2] x) => (float[2] y) { u = Relu (x) y = Exp (u) }", b"Relu", b"R\xfflu")
    ),
    "scales without an axis": parser.parse_model(
        """<ir_version: 5, opset_import: ["" : 10]> g (float[1] x) => (float[a] y) <float scales = {2.0}> { y = Resize (x, scales) }"""
    ).SerializeToString(),
    "sizes of two axes": parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => (float[a, b] y)
        <float[4] roi = {0, 0, 1, 1}, float[0] scales = {}, int64[2, 1] sizes = {2, 3}> { y = Resize (x, roi, scales, sizes) }"""
    ).SerializeToString(),
    "an axis that is too large": parser.parse_model(
        _HEAD
        + """(int32[a, b, c] x, bool go) => (int32[d, e, f] y) <int64[2] pads = {1, 0}, int64[1] axes = {2147483647}> {
            v = Pad (x, pads, , axes)
            y = If (go) <then_branch = t () => (int32[g, h, i] s) { s = Identity (v) },
                         else_branch = f () => (int32[g, h, i] u) { u = Sign (v) }> }"""
    ).SerializeToString(),
    "a layer without results": _changed(
        """(float[3, 1, 2] x, float[1, 8, 2] w, float[1, 8, 2] r, float[1, 16] y) => (float[1, 16] y) {
            h = LSTM <hidden_size = 2> (x, w, r, y) }""",
        _without_outputs,
    ),
    "a constant of another type than its name": _changed(
        """(int64[1] n) => (int4[k] y) { y = ConstantOfShape <value = int4[1] {1}> (n) }""", _of_int4
    ),
    "pads beside auto_pad": parser.parse_model(
        _HEAD
        + """(float[a, b, c] x) => (float[a, b, c] y, int64[a, b, c] z) {
            y, z = MaxPool <auto_pad = "SAME_UPPER", kernel_shape = [3], pads = [2, 2]> (x) }"""
    ).SerializeToString(),
    "a reduced constant with too many bytes": _changed(
        """(int64[3] x) => (int64[a] y) <int64[3] c = {1, 2, 3}> { r = ReduceSum (c) y = Add (x, r) }""", _lengthen
    ),
    "a loop beside a value's name that is not UTF-8": _damaged(
        """(float[2] x, int64 n, bool c) => (float[2] y) {
            s = SequenceEmpty () nnn = Neg (x) t = SequenceInsert (s, nnn)
            y, z = Loop (n, c, x, t) <body = b (int64 i, bool go, float[2] p, seq(float[2]) q) => (bool on, float[2] r, seq(float[2]) u) {
                on = Identity (go) r = Add (p, x) u = Identity (q) }> }""",
        b"nnn",
        b"n\xffn",
    ),
    "a function's domain that is not UTF-8": _damaged(
        """(float[2] x) => (float[2] y) { y = local.f (x) }
        <domain: "local", opset_import: ["": 21]> f (a) => (b) { v = nnn.Frobnicate (a) b = Relu (v) }""",
        b"nnn",
        b"n\xffn",
    ),
    "an unused input's name that is not UTF-8": _damaged(
        "(float[2] unused, float[2] x) => (float[2] y) { y = Relu (x) }", b"unused", b"un\xffsed"
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_damaged_model_runs_or_is_refused_with_one_of_our_errors(preset: type[omb.Preset], name: str) -> None:
    try:
        prepared = preset.prepare(MODELS[name])
    except omb.OnnxMultiBackendError:
        return
    assert prepared.get_outputs()[0].name == "y"
