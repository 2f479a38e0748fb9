# SPDX-License-Identifier: Apache-2.0
"""The passes over graphs that are nearly a pattern."""

from __future__ import annotations

from onnx_multi_backend.engines.across_nodes.near_patterns.chosen_boxes import indices_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.convolutions_apart import convolutions_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.joined_reshapes import matrices_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.lookalikes import lookalikes_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.near_activations import activations_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.norms_apart import norms_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.reversed_sequences import reversals_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.sliced_elements import elements_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.spaces_apart import spaces_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.split_parts import parts_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.turned_reductions import turned_before_reductions
from onnx_multi_backend.engines.across_nodes.near_patterns.written_cells import cells_apart
from onnx_multi_backend.engines.across_nodes.near_patterns.written_slopes import slopes_apart

PASSES = (
    turned_before_reductions,
    slopes_apart,
    elements_apart,
    spaces_apart,
    matrices_apart,
    cells_apart,
    parts_apart,
    indices_apart,
    reversals_apart,
    activations_apart,
    convolutions_apart,
    norms_apart,
    lookalikes_apart,
)
