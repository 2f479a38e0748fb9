# SPDX-License-Identifier: Apache-2.0
"""Rule: a Loop whose body reads its condition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import GraphProto, ModelProto, numpy_helper

from onnx_multi_backend.adapt.rules.loop_states import needed_of
from onnx_multi_backend.adapt.site import Body, Site


def loop_condition(site: Site) -> Iterator[ModelProto]:
    """Give the body the constant True in place of its condition, which holds in each step that is made. Source: Loop's documentation."""
    if not site.is_("Loop"):
        return
    condition = site.attribute("body").input[1].name
    if condition not in needed_of(site.attribute("body"), unread=()):
        return
    graph = GraphProto()
    graph.CopyFrom(site.attribute("body"))
    graph.input[1].name = f"{condition}/given"
    graph.initializer.append(numpy_helper.from_array(np.array(True), condition))
    body = Body(site, site.opsets)
    yield body.finish(*body("Loop", *site.node.input, outputs=len(site.node.output), body=graph))
