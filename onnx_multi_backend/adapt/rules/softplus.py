# SPDX-License-Identifier: Apache-2.0
"""Rule: Softplus, whose body in ONNX's schema overflows where the function itself does not."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def softplus(site: Site) -> Iterator[ModelProto]:
    """Write log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)).

    The schema's exp(x) is infinite for x above 11 in float16, above 88 in float32.
    """
    kind = site.elem_type(site.input(0))
    if not site.is_("Softplus") or not kind:
        return
    body, x = Body(site), site.input(0)
    zero, one = body.constant(0, kind), body.constant(1, kind)
    rest = body("Log", body("Add", one, body("Exp", body("Neg", body("Abs", x)))))
    yield body.finish(body("Add", body("Where", body("Less", x, zero), zero, x), rest))
