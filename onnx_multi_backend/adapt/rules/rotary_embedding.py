# SPDX-License-Identifier: Apache-2.0
"""Rule: the RotaryEmbedding of ONNX Runtime's domain."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.site import Body, Site

_LAST = 2**63 - 1


def rotary_embedding(site: Site) -> Iterator[ModelProto]:
    """Turn each pair of elements by the angle of its position. Source: ContribOperators.md.

    Positions of one axis are that of the first token, and the others follow. Tokens of three axes hold the elements of all heads.
    """
    if site.domain != DOMAIN or site.op_type != "RotaryEmbedding" or site.attribute("is_packed_batching", 0):
        return
    x, positions, *caches = (site.input(place) for place in range(4))
    rank, turned, heads = site.rank(x), site.attribute("rotary_embedding_dim", 0), site.attribute("num_heads", 0)
    pairs, hidden = ((site.shape(name) or [None])[-1] for name in (caches[0], x))
    if rank not in (3, 4) or site.rank(positions) not in (1, 2):
        return
    # Of no tokens a Reshape has no -1: what is known is written.
    moved = turned or (2 * pairs if pairs else -1)
    head = hidden // heads if hidden and heads else -1 if turned else moved
    heads = heads or (hidden // head if hidden and head > 0 else -1)
    if rank == 3 and heads < 0 and head < 0:
        return
    body = Body(site)
    if site.rank(positions) == 1:
        shape = body("Shape", x)
        axis = body.constant(rank - 2, TensorProto.INT64)
        numbers = body(
            "Range",
            *(body.constant(0, TensorProto.INT64), body("Gather", shape, axis), body.constant(1, TensorProto.INT64)),
        )
        positions = body("Unsqueeze", body("Add", positions, numbers), body.ints(0))
    over_heads = body.ints(2 if rank == 3 else 1)
    cos, sin = (body("Unsqueeze", body("Gather", cache, positions), over_heads) for cache in caches)
    each = x
    if rank == 3:
        each = body("Reshape", x, body.ints(0, 0, heads, head))
    kept = []
    if turned:
        kept = [_part(body, each, turned, _LAST)]
        each = _part(body, each, 0, turned)
    if site.attribute("interleaved", 0):
        one, other = (_part(body, each, start, _LAST, 2) for start in (0, 1))
    else:
        one, other = body("Split", each, axis=3, num_outputs=2, outputs=2)
    made = [
        body("Sub", body("Mul", one, cos), body("Mul", other, sin)),
        body("Add", body("Mul", other, cos), body("Mul", one, sin)),
    ]
    if site.attribute("interleaved", 0):
        last = body.ints(4)
        both = body("Concat", *(body("Unsqueeze", half, last) for half in made), axis=4)
        made = [body("Reshape", both, body.ints(0, 0, 0, moved))]
    made += kept
    whole = body("Concat", *made, axis=3) if len(made) > 1 else made[0]
    yield body.finish(body("Reshape", whole, body("Shape", x)) if rank == 3 else whole)


def _part(body: Body, value: str, start: int, end: int, step: int = 1) -> str:
    """Some elements of the fourth axis."""
    return str(body("Slice", value, *(body.ints(number) for number in (start, end, 3, step))))
