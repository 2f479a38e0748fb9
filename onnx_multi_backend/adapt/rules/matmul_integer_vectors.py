# SPDX-License-Identifier: Apache-2.0
"""Rule: MatMulInteger of vectors."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def matmul_integer_vectors(site: Site) -> Iterator[ModelProto]:
    """Give a vector the axis that it lacks, and take it from the result. Source: ``numpy.matmul``, by MatMul's documentation."""
    if not site.is_("MatMulInteger"):
        return
    ranks = [site.rank(site.input(i)) for i in (0, 1)]
    vectors = [rank == 1 for rank in ranks]
    if not any(vectors) or None in ranks or any(site.has_input(i) and site.rank(site.input(i)) != 0 for i in (2, 3)):
        return
    body = Body(site)
    operands = [
        body("Unsqueeze", site.input(i), body.ints(axis)) if vector else site.input(i)
        for i, (axis, vector) in enumerate(zip((0, 1), vectors, strict=True))
    ]
    product = body("MatMulInteger", *operands, *site.node.input[2:])
    yield body.finish(
        body("Squeeze", product, body.ints(*(axis for axis, v in zip((-2, -1), vectors, strict=True) if v)))
    )
