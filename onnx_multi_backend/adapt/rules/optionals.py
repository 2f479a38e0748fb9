# SPDX-License-Identifier: Apache-2.0
"""Rules: optionals that are known when the model is loaded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def optional_has_element(site: Site) -> Iterator[ModelProto]:
    """What is omitted is empty, and what is not an optional has an element."""
    if not site.is_("OptionalHasElement"):
        return
    found = site.type(site.input(0)) if site.has_input(0) else None
    if site.has_input(0) and (found is None or found.HasField("optional_type")):
        return
    body = Body(site)
    yield body.finish(body.constant(np.array(site.has_input(0))))


def optional_get_element(site: Site) -> Iterator[ModelProto]:
    """What is not an optional is its own element."""
    found = site.type(site.input(0)) if site.has_input(0) else None
    if site.is_("OptionalGetElement") and found is not None and not found.HasField("optional_type"):
        yield Body(site).finish(site.input(0))
