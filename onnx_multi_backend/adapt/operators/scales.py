# SPDX-License-Identifier: Apache-2.0
"""Normalizations that scale each channel by what only the run tells."""

from __future__ import annotations

from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Site

#: The operators, whose second and third inputs are a scale and a bias for each channel.
SCALED = frozenset({"BatchNormalization", "InstanceNormalization"})


def scales_at_run_time(site: Site) -> bool:
    """Whether the scale of a normalization is known only at run time, and one result is wanted."""
    if site.domain or site.op_type not in SCALED or GUARDED in site.node.name or site.has_output(1):
        return False
    return not site.attribute("training_mode", 0) and not site.is_known(site.input(1))
