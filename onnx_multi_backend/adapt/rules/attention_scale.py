# SPDX-License-Identifier: Apache-2.0
"""Rule: the scale of an Attention of ONNX Runtime's domain."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.site import Body, Site


def attention_scale(site: Site) -> Iterator[ModelProto]:
    """Scale what makes the queries, so that the usual scale does. Source: ContribOperators.md."""
    scale = site.attribute("scale", 0.0)
    if site.domain != DOMAIN or site.op_type != "Attention" or not scale:
        return
    sizes, kind = _sizes(site), site.elem_type(site.input(1))
    if not sizes or not kind:
        return
    body = Body(site, site.opsets)
    queries, head, whole = sizes
    factors = np.ones(whole)
    factors[:queries] = scale * math.sqrt(head)
    read = list(site.node.input)
    for place in (1, 2):  # weights and bias, of queries, keys and values beside one another
        if site.has_input(place):
            read[place] = body("Mul", read[place], body.constant(factors, kind))
    outputs = len(site.node.output)
    made = body("Attention", *read, domain=DOMAIN, outputs=outputs, **site.attributes("scale"))
    yield body.finish(*made)


def has_usual_scale(site: Site) -> bool:
    """Whether the scale of such a node is 1 / sqrt(elements of a head), as if it were left out."""
    sizes = _sizes(site)
    return sizes is not None and math.isclose(site.attribute("scale", 0.0), sizes[1] ** -0.5, rel_tol=1e-6)


def _sizes(site: Site) -> tuple[int, int, int] | None:
    """The elements of a query, of a head of it, and of query, key and value together, as far as the weights' shape tells."""
    heads, own = site.attribute("num_heads", 0), site.attribute("qkv_hidden_sizes", [])
    whole = (site.shape(site.input(1)) or [None])[-1] if len(site.node.input) > 1 else None
    if not whole or not heads:
        return None
    queries = own[0] if own else whole // 3
    return (queries, queries // heads, whole) if queries // heads and queries <= whole else None
