# SPDX-License-Identifier: Apache-2.0
"""Constants in encodings that OpenVINO misreads; see `engines.openvino.encoding`."""

from __future__ import annotations

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.openvino.encoding import misread, with_raw_data
from onnx_multi_backend.engines.session import Payload


def in_raw_data(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with the same values in ``raw_data``."""
    if not misread(payload.adapted.facts.contents.tensors, in_onnx_runtime=True):
        return payload, ()
    model, changes = with_raw_data(payload.adapted.proto, in_onnx_runtime=True)
    return payload.changed(model, *changes), changes
