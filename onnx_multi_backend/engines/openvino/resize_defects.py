# SPDX-License-Identifier: Apache-2.0
"""Forms of Resize that OpenVINO (2026.4) accepts, and then computes wrongly or refuses when it runs."""

from __future__ import annotations

import math

import numpy as np
from onnx import NodeProto, numpy_helper

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.operators.resizing import given, resized_axes
from onnx_multi_backend.adapt.site import INTEGER_BITS, Site

#: The attributes of the Resize that most models have.
_PLAIN = frozenset({"mode", "coordinate_transformation_mode", "nearest_mode", "cubic_coeff_a"})


def resized(site: Site) -> Defect | None:
    scales, axes = site.constant(site.input(2)), resized_axes(site)
    if given(site, 2) and scales is not None and (scales.ndim != 1 or (axes is not None and len(scales) != len(axes))):
        return None  # it is not valid: the engine says so
    factors = _factors(site)
    mode, rank = site.attribute("mode", "nearest"), site.rank(site.input(0))
    shrinks = factors is None or any(f < 1 for f in factors)
    if mode == "linear" and rank is not None and rank > 5:
        return Defect(
            "linear interpolation of more than five axes is refused when it runs, or ends the process", wrong=True
        )
    if site.attribute("antialias", 0) and mode != "nearest" and shrinks:
        return Defect("antialias=1 is ignored (openvinotoolkit/openvino#35893)", wrong=True)
    if site.attribute("exclude_outside", 0) and mode == "cubic":
        return Defect("exclude_outside=1 is ignored", wrong=True)
    keeps = site.attribute("keep_aspect_ratio_policy", "stretch") != "stretch" and given(site, 3)
    if keeps and (factors is None or len(set(factors)) > 1):
        return Defect("keep_aspect_ratio_policy is ignored", wrong=True)
    if (too_little := _too_little(site)) is not False:
        return Defect("an axis whose length stays is left out, also where its scale is not 1", wrong=bool(too_little))
    return _resized_together(site, factors)


def grows_plainly(node: NodeProto, facts: Facts) -> bool:
    """Whether a Resize repeats or interpolates along known axes by known whole numbers: it is right whatever it reads."""
    given = {a.name: a for a in node.attribute}
    if not given.keys() <= _PLAIN or len(node.input) != 3 or node.input[2] not in facts.certain:
        return False
    how = given.get("coordinate_transformation_mode")
    if "mode" in given and given["mode"].s not in (b"nearest", b"linear"):
        return False
    if how is not None and how.s in (b"align_corners", b"tf_crop_and_resize"):
        return False
    try:
        scales = numpy_helper.to_array(facts.certain[node.input[2]]).tolist()
    except ValueError:  # the checker says so
        return False
    whole = isinstance(scales, list) and all(isinstance(s, float) and s >= 1 and s.is_integer() for s in scales)
    return whole and 1 <= len(scales) <= 5 and scales[0] == 1


def _resized_together(site: Site, factors: list[float] | None) -> Defect | None:
    """Which axes cannot be resized at once. Source: measured, for 1 to 6 axes; more are refused when the model runs."""
    mode, rank, axes = site.attribute("mode", "nearest"), site.rank(site.input(0)), resized_axes(site)
    if rank is None or axes is None:
        return None
    integers = site.elem_type(site.input(0)) in INTEGER_BITS
    if mode == "cubic" and rank >= 5 and integers:
        return Defect("the cubic interpolation of integers along five or more axes is not rounded", wrong=True)
    if factors is None:
        if mode == "cubic" and rank in (3, 4) and len(axes) > 2:
            return Defect("the cubic interpolation along more than two axes together is wrong")
        return None
    changed = [axis for axis, factor in zip(axes, factors, strict=True) if factor != 1]
    if mode == "cubic" and ((rank == 3 and len(changed) > 1 and 0 in changed) or (rank == 4 and len(changed) > 2)):
        return Defect("the cubic interpolation along these axes together is wrong", wrong=True)
    if rank in (4, 5) and len(changed) > rank - 2 and 0 in changed:
        return Defect("these axes cannot be resized together")
    return None


def _too_little(site: Site) -> bool | None:
    """Whether an axis of several elements stays as long as it is by a scale that is not 1; None: it may."""
    scales, shape, axes = site.constant(site.input(2)), site.shape(site.input(0)), resized_axes(site)
    if not given(site, 2):
        return False
    if scales is None or axes is None or shape is None:
        return None
    unknown = False
    for scale, axis in zip(scales, axes, strict=True):
        length = shape[axis]
        if not 1 < scale < 1.5 or length == 1:
            continue
        if length is None:
            unknown = True
        elif math.floor(np.float32(scale) * np.float32(length)) == length:
            return True
    return None if unknown else False


def _factors(site: Site) -> list[float] | None:
    """By how much each resized axis grows; None where that is not known."""
    if given(site, 2):
        scales = site.constant(site.input(2))
        return None if scales is None or scales.ndim != 1 else [float(s) for s in scales]
    sizes, shape = site.constant(site.input(3)), site.shape(site.input(0))
    if sizes is None or shape is None:
        return None
    old_sizes = [shape[axis] for axis in site.attribute("axes", range(len(shape)))]
    if sizes.shape != (len(old_sizes),):
        return None
    return [float(new) / old for new, old in zip(sizes, old_sizes, strict=True) if old] if all(old_sizes) else None
