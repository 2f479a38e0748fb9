# SPDX-License-Identifier: Apache-2.0
"""Ifs whose conditions are known, with large constants in their branches: ONNX Runtime 1.24 lost these, or died of them."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

SIZE = 45
CONSTANT = np.arange(SIZE, dtype=np.float32) / 4
NUMBERS = ", ".join(map(str, CONSTANT))


def branching(depth: int, condition: str) -> str:
    """The nodes of an If in an If, the innermost of which adds a constant to x; the last makes ``r<depth>``."""
    if not depth:
        return f"c = Constant <value = float[{SIZE}] {{{NUMBERS}}}> () r0 = Add (c, x)"
    inner = branching(depth - 1, condition)
    return f"""r{depth} = If ({condition}) <
        then_branch = then{depth} () => (float[{SIZE}] r{depth - 1}) {{ {inner} }},
        else_branch = else{depth} () => (float[{SIZE}] z{depth}) {{ z{depth} = Neg (x) }}>"""


@pytest.mark.parametrize("condition", ["known", "computed"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_they_are_computed(preset: type[omb.Preset], depth: int, condition: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 13]> g (float[{SIZE}] x) => (float[{SIZE}] y)
        <bool known = {{1}}, bool unknown = {{0}}> {{
        computed = Not (unknown) {branching(depth, condition)} y = Exp (r{depth}) }}"""
    )
    prepared = preset.prepare(model)
    for factor in (-1, 0.5, -1):
        x = np.linspace(-2, 1, SIZE, dtype=np.float32) * np.float32(factor)
        np.testing.assert_allclose(prepared.run([x])[0], np.exp(CONSTANT + x), rtol=1e-5)
