# SPDX-License-Identifier: Apache-2.0
"""Optimizers that make a normalization of what is nearly one (1.24 to 1.32).

They do so of means that lose their axis, where rows and columns are as many, of another power than the square, of a number with more axes than what
is normalized, and in 1.24 of an epsilon for each row.
"""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.written_norms import OPERATORS, ROOTS, WrittenNorm, written_norms
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents

#: Make one operator of a normalization that is written out.
_NORMALIZING = ("LayerNormFusionL1", "LayerNormFusionL2", "SimplifiedLayerNormFusion")


def of_norms(contents: Contents) -> list[str]:
    """They make a normalization of one that is written out, whatever axes the means keep, the power is and the shape of epsilon."""
    if not all(contents.has({operator}) for operator in OPERATORS) or not contents.has(ROOTS):
        return []
    norms = list(written_norms(contents.nodes))
    if not norms:
        return []
    facts = Facts(contents.model, contents)

    def is_misread(norm: WrittenNorm) -> bool:
        base, exponent = norm.square.input[:2]
        if norm.square.op_type == "Pow":
            power = facts.constants.get(exponent)
            other = power is not None and not np.array_equal(numpy_helper.to_array(power).ravel(), [2])
            other = other or base in facts.constants
        else:
            other = base != exponent
        read = (*(norm.sum.input if norm.sum is not None else ()), *norm.square.input[1:])
        shaped = any(list(facts.constants[name].dims) not in ([], [1]) for name in read if name in facts.constants)
        # Before 1.32 the default takes the place of an epsilon that stands first.
        first = norm.sum is not None and norm.sum.input[0] in facts.constants and applies({"onnxruntime": "<1.32"})
        return bool(norm.reductions) or other or shaped or first

    return list(_NORMALIZING) if any(map(is_misread, norms)) else []
