# SPDX-License-Identifier: Apache-2.0
"""What the tables of defects ask of Attention."""

from __future__ import annotations

from onnx_multi_backend.adapt.site import Site


def as_many_queries(site: Site) -> bool:
    """Whether there are as many queries as new keys: then both alignments are one."""
    q, k = (site.type(site.input(i)) for i in (0, 1))
    if q is None or k is None or len(q.tensor_type.shape.dim) < 2 or len(k.tensor_type.shape.dim) < 2:
        return False
    one, other = q.tensor_type.shape.dim[-2], k.tensor_type.shape.dim[-2]
    return one.WhichOneof("value") is not None and one == other
