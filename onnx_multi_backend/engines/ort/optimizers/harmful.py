# SPDX-License-Identifier: Apache-2.0
"""Which optimizers of ONNX Runtime must not see a model."""

from __future__ import annotations

from onnx_multi_backend.engines.ort.chosen_branches import FOLDING, of_branches
from onnx_multi_backend.engines.ort.empty_values import of_empty_results
from onnx_multi_backend.engines.ort.optimizers.of_norms import of_norms
from onnx_multi_backend.engines.ort.optimizers.of_pads_and_factors import of_factors, of_pads
from onnx_multi_backend.engines.ort.optimizers.of_products import (
    of_double_products,
    of_halves,
    of_idle_transposes,
    of_normalized_products,
    of_turned_matrices,
)
from onnx_multi_backend.engines.ort.optimizers.of_quantized import (
    of_captured,
    of_quantized,
    of_scaled_products,
    of_signed_products,
)
from onnx_multi_backend.engines.ort.optimizers.of_quotients_and_ranges import of_quotients, of_ranges
from onnx_multi_backend.engines.ort.optimizers.of_types import of_cast_constants, of_choices, of_defaults, of_optionals
from onnx_multi_backend.models.contents import Contents

#: Makes one node of two that compute the same of the same values.
MERGING = "CommonSubexpressionElimination"
#: Makes the bias of a convolution of what is added behind it.
JOINING_BIASES = "ConvAddFusion"

#: Each names the optimizers that must not see a model for one reason.
LOOKING = (
    of_pads,
    of_halves,
    of_choices,
    of_optionals,
    of_defaults,
    of_quantized,
    of_captured,
    of_signed_products,
    of_idle_transposes,
    of_factors,
    of_norms,
    of_turned_matrices,
    of_double_products,
    of_normalized_products,
    of_scaled_products,
    of_quotients,
    of_ranges,
    of_branches,
    of_empty_results,
)


def harmful_optimizers(contents: Contents) -> list[str]:
    """The optimizers of ONNX Runtime that must not see a model."""
    found = [name for look in LOOKING for name in look(contents)]
    return found if FOLDING not in found else [*found, *of_cast_constants(contents)]
