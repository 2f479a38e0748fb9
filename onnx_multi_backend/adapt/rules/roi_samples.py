# SPDX-License-Identifier: Apache-2.0
"""Rule: a RoiAlign that leaves the number of samples to its default."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site


def leaves_samples_out(site: Site) -> bool:
    """Whether a RoiAlign does not name its number of samples."""
    return site.attribute("sampling_ratio") is None


def roi_samples(site: Site) -> Iterator[ModelProto]:
    """Name the default, 0, and the default of the coordinates, which another opset changed."""
    if not site.is_("RoiAlign") or not leaves_samples_out(site):
        return
    body, mode = Body(site), "half_pixel" if site.opset >= 16 else "output_half_pixel"
    options = {"coordinate_transformation_mode": mode, **site.attributes(), "sampling_ratio": 0}
    yield body.finish(body("RoiAlign", *site.node.input, **options))
