# SPDX-License-Identifier: Apache-2.0
"""What a Resize is about: its axes, and how it is told their new sizes."""

from __future__ import annotations

from onnx_multi_backend.adapt.site import Site


def given(site: Site, index: int) -> bool:
    """Whether `roi`, `scales` or `sizes` is given: until opset 13, one that is empty stands for one that is not."""
    return site.has_input(index) and site.shape(site.input(index)) != [0]


def resized_axes(site: Site) -> list[int] | None:
    """The axes that scales and sizes are about; None where that is not known."""
    rank = site.rank(site.input(0))
    if rank is None:
        return None
    return [axis % rank for axis in site.attribute("axes", range(rank))] if rank else []


def crops(site: Site) -> bool:
    """Whether a Resize takes a part of the image."""
    return site.attribute("coordinate_transformation_mode") == "tf_crop_and_resize" and given(site, 1)


def is_of_last_axes(site: Site) -> bool:
    """Whether a Resize counts an axis from the end."""
    return site.is_("Resize") and any(axis < 0 for axis in site.attribute("axes", ()))


def keeps_ratio_of_last_axes(site: Site) -> bool:
    """Whether it keeps an aspect ratio too."""
    return is_of_last_axes(site) and site.attribute("keep_aspect_ratio_policy", "stretch") != "stretch"
