# SPDX-License-Identifier: Apache-2.0
"""Quotients of 8 bits are cut off towards zero, on every processor."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb


@pytest.mark.parametrize("size", ["120", "n"])
@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_quotients_of_8_bits_are_cut_off(kind: str, size: str, engine: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 14]>'
        f"g ({kind}[{size}] x, {kind}[{size}] by) => ({kind}[{size}] y) {{ y = Div (x, by) }}"
    )
    x, by = (np.arange(120) * 2 - (128 if kind == "int8" else 0)).astype(kind), (np.arange(120) % 7 + 1).astype(kind)
    result = engine.prepare(model).run([x, by])[0]
    np.testing.assert_array_equal(result, np.trunc(x.astype(float) / by).astype(kind))
