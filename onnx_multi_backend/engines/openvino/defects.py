# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that OpenVINO accepts, and then computes wrongly or refuses when it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx_multi_backend.adapt.site import Site

Defect = Callable[[Site], "str | None"]

DEFECTS: Mapping[str, Defect] = {}


def find(site: Site) -> str | None:
    """What is wrong with the engine's form of a node; None where nothing is known."""
    defect = DEFECTS.get(site.op_type) if not site.domain else None
    return defect(site) if defect else None
