# SPDX-License-Identifier: Apache-2.0
"""Forms of Resize that ONNX Runtime computes wrongly, or refuses when it runs (1.24 to 1.32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import NodeProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.names import KERNEL
from onnx_multi_backend.adapt.operators.resizing import (
    crops,
    given,
    is_of_last_axes,
    keeps_ratio_of_last_axes,
    resized_axes,
)
from onnx_multi_backend.adapt.site import INTEGER_BITS, Site
from onnx_multi_backend.host.applies import applies

#: The last axes that kernels interpolate along, by mode and rank: those of images, or with the channels behind them.
_TOGETHER: Mapping[str, Mapping[int, tuple[tuple[int, ...], ...]]] = {
    "linear": {2: ((0, 1),), 3: ((0, 1, 2),), 4: ((2, 3), (1, 2)), 5: ((2, 3, 4),)},
    "cubic": {2: ((0, 1),), 4: ((2, 3), (1, 2))},
}
_CROPS = "tf_crop_and_resize"


def resized(site: Site) -> Defect | None:
    """What is wrong with a Resize on the CPU."""
    if is_of_last_axes(site) and applies({"onnxruntime": "<1.27"}):  # it reads beyond its list of scales
        return Defect("an axis counted from the end ends the process", wrong=True, deadly=True)
    if defect := wrongly_sized(site):
        return defect
    if site.attribute("mode") == "cubic" and site.elem_type(site.input(0)) in INTEGER_BITS:
        return Defect("the cubic interpolation of integers is refused at run time")
    if _are_not_together(site):
        return Defect("interpolation along these axes together is refused at run time")
    return None


def wrongly_sized(site: Site) -> Defect | None:
    """What is wrong with the sizes of a Resize, and with what it takes for one that changes nothing, whatever computes it."""
    if keeps_ratio_of_last_axes(site):
        return Defect("an axis counted from the end is not resized where an aspect ratio is kept", wrong=True)
    if crops(site) and KERNEL not in site.node.name and _may_crop_without_resizing(site):
        return Defect("an axis that is cropped, and has its size again, is left as it is", wrong=True)
    return None


def may_be_resized_wrongly(node: NodeProto, facts: Facts) -> bool:
    """Whether `resized` may know something of a Resize."""
    for a in node.attribute:
        if min(a.ints, default=0) < 0 or a.s in (b"cubic", _CROPS.encode()):
            return True
    interpolates = any((a.name, a.s) == ("mode", b"linear") for a in node.attribute)
    return interpolates and len(node.input) > 3 and node.input[3] in facts.known


def _flat(site: Site, place: int) -> np.ndarray[Any, Any] | None:
    """The elements of a constant list: ONNX Runtime takes one of several axes too, which is not valid."""
    known = site.constant(site.input(place))
    return None if known is None else known.ravel()


def _may_crop_without_resizing(site: Site) -> bool:
    """Whether an axis of which `roi` takes a part may keep its size; with scales, whether it does. What has no known rank is not looked at."""
    axes, shape = resized_axes(site), site.shape(site.input(0))
    if axes is None or shape is None:
        return False
    place = 2 if given(site, 2) else 3
    roi, factors = _flat(site, 1), _flat(site, place)
    if site.attribute("keep_aspect_ratio_policy", "stretch") != "stretch" or (
        factors is not None and factors.size != len(axes)
    ):
        factors = None
    if factors is None and place == 2:
        return False
    for i, axis in enumerate(axes):
        size = shape[axis]
        if roi is not None and roi.size == 2 * len(axes) and (roi[i], roi[len(axes) + i]) == (0, 1):
            continue
        if factors is None or (size is None and place == 3):
            return True
        if factors[i] == 1 if size is None else size == (factors[i] if place == 3 else np.floor(factors[i] * size)):
            return True
    return False


def _are_not_together(site: Site) -> bool:
    """Whether axes are surely resized that no kernel interpolates along at once; where scales tell, the model is refused beforehand."""
    mode, axes, shape = site.attribute("mode"), resized_axes(site), site.shape(site.input(0))
    sizes = _flat(site, 3) if given(site, 3) else None
    if mode not in _TOGETHER or axes is None or shape is None or sizes is None or sizes.size != len(axes):
        return False
    if site.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        return False
    changed = {axis for axis, new in zip(axes, sizes, strict=True) if shape[axis] not in (None, new)}
    return bool(changed) and not any(changed <= set(together) for together in _TOGETHER[mode].get(len(shape), ()))
