# SPDX-License-Identifier: Apache-2.0
"""A rewritten model is looked through once more where what takes a node's place tells less than the node did, and only there."""

from __future__ import annotations

from typing import Any

import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from onnx_multi_backend.adapt import single_node
from onnx_multi_backend.adapt.pipeline import Adapted
from onnx_multi_backend.engines import rewriting
from onnx_multi_backend.engines.session import Built, Payload
from onnx_multi_backend.engines.target import Target

#: Layers over sequences of different lengths, and a Clip of integers, which tells that they are small.
ROWS = "(float[n, k] x, int32[n] lens, float[1, 6, k] w, float[1, 6, 2] r) => (float[s, 1, n, 2] y)"
GRU = 'u = Unsqueeze (x, zero) h = GRU <hidden_size = 2> (u, w, r, "", lens) y = Relu (h)'
CLIP = "(int32[n] x) => (int32[n] y) <int32 low = {-300}, int32 high = {300}> { c = Clip (x, low, high) y = Relu (c) }"


def model(body: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {body}')


@pytest.mark.parametrize(
    ("body", "as_much"),
    [(f"{ROWS} <int64[1] zero = {{0}}> {{ {GRU} }}", True), (CLIP, False)],
)
def test_types_are_inferred_once_more_where_less_is_told(
    openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, body: str, as_much: bool
) -> None:
    inferred: list[ModelProto] = []
    infer, built = single_node.infer, rewriting._built
    told: list[bool] = []

    def counting(made: ModelProto) -> ModelProto:
        inferred.append(made)
        return infer(made)

    def counted(target: Target, payload: Payload, adapted: Adapted, **given: Any) -> Built | None:
        inferred.clear()
        told.append(adapted.settled)
        return built(target, payload, adapted, **given)

    monkeypatch.setattr(single_node, "infer", counting)
    monkeypatch.setattr(rewriting, "_built", counted)
    assert openvino.prepare(model(body)).adaptations
    assert told[0] is as_much
    assert not (as_much and inferred)
