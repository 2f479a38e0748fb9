# SPDX-License-Identifier: Apache-2.0
"""Rule: Resize of axes that are counted from the end."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.operators.resizing import is_of_last_axes, resized_axes
from onnx_multi_backend.adapt.site import Body, Site


def resize_axes(site: Site) -> Iterator[ModelProto]:
    """Count the axes from the first. Source: Resize's documentation."""
    axes = resized_axes(site) if is_of_last_axes(site) else None
    if axes is None:
        return
    body = Body(site, site.opsets)
    yield body.finish(body("Resize", *site.node.input, axes=axes, **site.attributes("axes")))
