# SPDX-License-Identifier: Apache-2.0
"""Rule: a Loop that is known never to run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def loop_of_no_steps(site: Site) -> Iterator[ModelProto]:
    """Pass the initial values on. Source: Loop's documentation, where the condition is looked at before each step."""
    states = len(site.node.input) - 2
    if not site.is_("Loop") or not runs_never(site) or any(site.node.output[states:]):
        return
    yield Body(site, site.opsets).finish(*site.node.input[2:])


def runs_never(site: Site) -> bool:
    """Whether a Loop's trip count or its first condition is known, and allows no step."""
    count, condition = (site.constant(site.input(i)) for i in (0, 1))
    return (count is not None and int(count.item()) <= 0) or (condition is not None and not condition.item())


def runs_once(site: Site) -> bool:
    """Whether a Loop's trip count and its first condition are known, and allow a step; either may be omitted."""
    count, condition = (site.constant(site.input(i)) if site.has_input(i) else np.array(1) for i in (0, 1))
    return count is not None and condition is not None and int(count.item()) > 0 and bool(condition.item())
