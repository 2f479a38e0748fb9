# SPDX-License-Identifier: Apache-2.0
"""Recipes: resizing and sampling of images, and signals."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from backend_test.search.graphs import values as v
from backend_test.search.graphs.builder import Value, static
from backend_test.search.graphs.draft import Draft
from backend_test.search.graphs.layers import image
from backend_test.search.graphs.recipes import recipe

_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize")


@recipe("Resize")
def resize(d: Draft) -> list[Value]:
    spatial = d.rng.choice((1, 2, 2, 2, 3))
    var = "T1" if "T1" in d.by_variable else "T"
    mode = d.rng.choice(("nearest", "linear", "cubic") if spatial == 2 and d.since >= 11 else ("nearest", "linear"))
    first = d.x(
        var, dims=image(d, d.rng.randint(1, 2), spatial), among=sorted(v.FLOATS | {TensorProto.UINT8, TensorProto.INT8})
    )
    assert first.dims is not None
    rank = len(first.dims)
    d.attr("mode", mode, 1 if mode != "nearest" else 0.6)
    factors = [d.rng.choice((0.5, 0.75, 1.0, 1.5, 2.0)) for _ in range(spatial)]
    axes = list(range(2, rank)) if d.since >= 18 and d.b.chance(0.4) else None
    if axes:
        d.attr("axes", axes)
    if d.since < 11:
        d.given(np.float32([1, 1, *factors]), kind=TensorProto.FLOAT)
        return d.done()
    coordinates = d.attr(
        "coordinate_transformation_mode", d.rng.choice(_COORDINATES[: 4 if d.b.chance(0.9) else 5]), 0.7
    )
    d.attr("nearest_mode", d.rng.choice(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")), 0.5)
    if mode == "cubic":
        d.attr("cubic_coeff_a", d.rng.choice((-0.75, -0.5)), 0.4)
        d.attr("exclude_outside", d.rng.randrange(2), 0.3)
    if mode != "nearest":
        d.attr("antialias", 1, 0.15)
    if coordinates == "tf_crop_and_resize":
        lead = 0 if axes else 2
        roi = [0.0] * lead + [0.1] * spatial + [1.0] * lead + [0.8] * spatial
        d.given(np.float32(roi), kind=TensorProto.FLOAT)
        d.attr("extrapolation_value", 0.5, 0.5)
    elif d.since < 13:
        d.given(np.float32([]), kind=TensorProto.FLOAT, constant=True)
    else:
        d.skip()
    sizes = d.b.chance(0.4) and all(x[0] == x[1] for x in first.dims)
    if sizes:
        target = [max(1, int(x[0] * f)) for x, f in zip(first.dims[2:], factors, strict=True)]
        if d.since < 13:
            d.given(np.float32([]), kind=TensorProto.FLOAT, constant=True)
        else:
            d.skip()
        d.given(target if axes else [first.dims[0][0], first.dims[1][0], *target])
        if axes:
            d.attr("keep_aspect_ratio_policy", d.rng.choice(("stretch", "not_larger", "not_smaller")), 0.4)
    else:
        d.given(np.float32(factors if axes else [1, 1, *factors]), kind=TensorProto.FLOAT)
    return d.done()


@recipe("Upsample")
def upsample(d: Draft) -> list[Value]:
    d.x("T", dims=image(d, 2, 2))
    factors = [1.0, 1.0, d.rng.choice((1.0, 2.0)), d.rng.choice((1.0, 2.0, 3.0))]
    d.attr("mode", d.rng.choice(("nearest", "linear")))
    if "scales" in d.schema.attributes:
        d.attr("scales", factors)
    else:
        d.given(np.float32(factors), kind=TensorProto.FLOAT)
    return d.done()


@recipe("GridSample")
def grid_sample(d: Draft) -> list[Value]:
    first = d.x("T1", dims=image(d, 2, 2), among=sorted(v.FLOATS))
    assert first.dims is not None
    d.x("T2", dims=(first.dims[0], d.b.dim(1), d.b.dim(1), (2, 2)), reuse=False, profile="ordinary")
    modes = ("bilinear", "nearest", "bicubic") if d.since < 20 else ("linear", "nearest", "cubic")
    d.attr("mode", d.rng.choice(modes), 0.8)
    d.attr("padding_mode", d.rng.choice(("zeros", "border", "reflection")), 0.6)
    d.attr("align_corners", d.rng.randrange(2), 0.6)
    return d.done()


@recipe("AffineGrid")
def affine_grid(d: Draft) -> list[Value]:
    n, h, w = d.rng.randint(1, 2), d.rng.randint(1, 4), d.rng.randint(1, 4)
    d.x("T1", dims=static(n, 2, 3), reuse=False)
    d.given([n, 1, h, w])
    d.attr("align_corners", d.rng.randrange(2), 0.6)
    return d.done()


@recipe("RoiAlign", "MaxRoiPool")
def roi_align(d: Draft) -> list[Value]:
    var = "T1" if d.op_type == "RoiAlign" else "T"
    first = d.x(var, dims=(d.b.dim(1), (2, 2), (6, 6), (6, 6)), profile="ordinary")
    rois = d.rng.randint(1, 3)
    corners = np.array([[d.rng.uniform(0, 3) for _ in range(4)] for _ in range(rois)])
    corners[:, 2:] += corners[:, :2] + 0.5
    if d.op_type == "MaxRoiPool":
        d.given(np.concatenate([np.zeros((rois, 1)), np.round(corners)], 1), kind=first.kind)
        d.attr("pooled_shape", [2, 2])
        d.attr("spatial_scale", d.rng.choice((1.0, 0.5)), 0.5)
        return d.done()
    d.given(corners, kind=first.kind)
    d.given(np.zeros(rois, np.int64))
    d.attr("mode", d.rng.choice(("avg", "max")), 0.6)
    d.attr("output_height", d.rng.randint(1, 3), 0.7)
    d.attr("output_width", d.rng.randint(1, 3), 0.7)
    d.attr("sampling_ratio", d.rng.randint(0, 2), 0.6)
    d.attr("spatial_scale", d.rng.choice((1.0, 0.5)), 0.5)
    d.attr("coordinate_transformation_mode", d.rng.choice(("half_pixel", "output_half_pixel")), 0.5)
    return d.done()


@recipe("Col2Im")
def col2im(d: Draft) -> list[Value]:
    h, w = d.rng.randint(3, 5), d.rng.randint(3, 5)
    d.x("T", dims=(d.b.dim(1), (4, 4), ((h - 1) * (w - 1),) * 2), reuse=False)
    d.given([h, w])
    d.given([2, 2])
    return d.done()


@recipe("DeformConv")
def deform_conv(d: Draft) -> list[Value]:
    batch = d.b.dim(1)
    d.x("T", dims=(batch, (2, 2), (4, 4), (5, 5)), profile="ordinary")
    d.x("T", dims=static(3, 2, 2, 2))
    d.x("T", dims=(batch, (8, 8), (3, 3), (4, 4)), reuse=False, profile="ordinary")
    if d.b.chance(0.5):
        d.x("T", dims=static(3))
        if d.b.chance(0.5):
            d.x("T", dims=(batch, (4, 4), (3, 3), (4, 4)), reuse=False, profile="ordinary")
    d.attr("kernel_shape", [2, 2], 0.7)
    return d.done()


@recipe("DFT")
def dft(d: Draft) -> list[Value]:
    parts = d.rng.choice((1, 2))
    length = d.b.dim(2)
    d.x("T1", dims=(d.b.dim(1), length, (parts, parts)), profile="ordinary")
    d.attr("inverse", d.rng.randrange(2), 0.4)
    if parts == 1 and not d.attributes.get("inverse"):
        d.attr("onesided", d.rng.randrange(2), 0.4)
    d.attr("axis", 1, 0.5)
    if d.b.chance(0.4):
        d.given(d.rng.randint(2, 5))
    elif d.since >= 20:
        d.skip()
    if d.since >= 20 and d.b.chance(0.5):
        d.given(d.rng.choice((1, -2)))
    return d.done()


@recipe("STFT")
def stft(d: Draft) -> list[Value]:
    d.x("T1", dims=(d.b.dim(1), (16, 16), (1, 1)), profile="ordinary")
    d.given(d.rng.randint(2, 4))
    frame = d.rng.choice((4, 8))
    if d.b.chance(0.5):
        d.x("T1", dims=static(frame), reuse=False, profile="ordinary")
    else:
        d.skip()
    d.given(frame)
    d.attr("onesided", d.rng.randrange(2), 0.6)
    return d.done()


@recipe("BlackmanWindow", "HammingWindow", "HannWindow")
def signal_window(d: Draft) -> list[Value]:
    d.given(d.rng.randint(2, 9), kind=d.kind("T1"))
    d.attr("periodic", d.rng.randrange(2), 0.6)
    return d.done()


@recipe("MelWeightMatrix")
def mel(d: Draft) -> list[Value]:
    for number in (d.rng.randint(2, 5), d.rng.choice((8, 16)), 8000):
        d.given(number)
    kind = d.kind("T2", [TensorProto.FLOAT])
    d.given(0.0, kind=kind)
    d.given(3000.0, kind=kind)
    return d.done()
