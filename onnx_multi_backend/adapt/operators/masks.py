# SPDX-License-Identifier: Apache-2.0
"""What rules and tables of defects both ask of the mask of Attention."""

from __future__ import annotations

from onnx_multi_backend.adapt.site import Site

#: Its input.
MASK = 3


def one_row(site: Site) -> bool:
    """Whether the mask has one row, where there may be several queries."""
    queries, mask = site.shape(site.input(0)), site.shape(site.input(MASK))
    return bool(mask and queries and len(mask) > 1 and mask[-2] == 1 and queries[-2] != 1)
