# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that OpenVINO accepts, and then computes wrongly or refuses when it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx_multi_backend.adapt.site import Site

Defect = Callable[[Site], "str | None"]


def _attention(site: Site) -> str | None:
    if any(site.attribute(name, -1) >= 0 for name in ("left_window_size", "right_window_size")):
        return "the window is ignored (openvinotoolkit/openvino#37820)"
    if site.attribute("is_causal", 0) and (site.has_input(4) or site.has_input(6)):
        return "the causal mask is aligned to the last key, ONNX's to the length of the past"
    return None


def _bit_shift(site: Site) -> str | None:
    return "shifts are products and quotients: wrong for negative numbers, overflow and shifts out of range"


def _layout(site: Site) -> str | None:
    return "layout=1 is ignored" if site.attribute("layout", 0) else None


def _space_to_depth(site: Site) -> str | None:
    return "mode is ignored" if site.attribute("mode", "DCR") != "DCR" else None


DEFECTS: Mapping[str, Defect] = {
    "Attention": _attention,
    "BitShift": _bit_shift,
    "GRU": _layout,
    "LSTM": _layout,
    "RNN": _layout,
    "SpaceToDepth": _space_to_depth,
}


def find(site: Site) -> str | None:
    """What is wrong with the engine's form of a node; None where nothing is known."""
    defect = DEFECTS.get(site.op_type) if not site.domain else None
    return defect(site) if defect else None
