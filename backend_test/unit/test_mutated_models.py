# SPDX-License-Identifier: Apache-2.0
"""Models that `backend_test.fuzz` has damaged: what the engine refuses is refused with one of our errors."""

from __future__ import annotations

import pytest
from onnx import ModelProto, parser

import onnx_multi_backend as omb

_HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '


def _damaged(text: str, old: bytes, new: bytes) -> bytes:
    """A model, some bytes of it replaced."""
    data = parser.parse_model(_HEAD + text).SerializeToString()
    assert old in data and len(old) == len(new)
    return data.replace(old, new)


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
