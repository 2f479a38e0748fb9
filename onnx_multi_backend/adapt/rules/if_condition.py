# SPDX-License-Identifier: Apache-2.0
"""Rule: an If whose condition has axes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

#: Since this opset Reshape takes its shape as an input.
_SHAPE_INPUT = 5


def if_condition(site: Site) -> Iterator[ModelProto]:
    """Take the axes from the condition, which has one element. Source: If's documentation, and ONNX Runtime, which looks at no axes."""
    if not site.is_("If") or site.opset < _SHAPE_INPUT or site.rank(site.input(0)) in (0, 1):
        return
    body = Body(site, site.opsets)
    condition = body("Reshape", site.input(0), body.constant(np.array([], np.int64)))
    branches = {name: site.attribute(name) for name in ("then_branch", "else_branch")}
    yield body.finish(*body("If", condition, outputs=len(site.node.output), **branches))
