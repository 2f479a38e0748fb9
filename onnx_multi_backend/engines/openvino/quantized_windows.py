# SPDX-License-Identifier: Apache-2.0
"""Windows of a QLinearAveragePool that reach beyond the pads.

With `ceil_mode` and `count_include_pad`, ONNX Runtime (1.24 to 1.32) divides by the size of the whole window, also where that reaches beyond
the pads, which AveragePool does not count. So there are as many pads more as a window may need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def _are_integers(value: Any) -> TypeGuard[list[int]]:
    return isinstance(value, list) and all(isinstance(number, int) for number in value)


def with_whole_windows(attributes: Mapping[str, Any], sizes: Sequence[int] | None) -> dict[str, Any] | None:
    """The attributes of an AveragePool that does the same; None where there are none, or the pool is not valid.

    Parameters
    ----------
    attributes : mapping of str to object
        Those of the QLinearAveragePool.
    sizes : sequence of int, optional
        Of the image, without batch and channels, where they are known.
    """
    kept = {name: value for name, value in attributes.items() if name != "channels_last"}
    kernel, how = attributes.get("kernel_shape"), attributes.get("auto_pad", b"NOTSET")
    if not _are_integers(kernel) or not isinstance(how, bytes):
        return None
    strides, pads = attributes.get("strides", [1] * len(kernel)), attributes.get("pads", [0] * 2 * len(kernel))
    if not _are_integers(strides) or not _are_integers(pads):
        return None
    if len(strides) != len(kernel) or len(pads) != 2 * len(kernel) or min((*kernel, *strides), default=0) < 1:
        return None
    if not attributes.get("ceil_mode", 0) or not attributes.get("count_include_pad", 0) or how.startswith(b"SAME"):
        return kept
    if how == b"VALID":
        pads = [0] * len(pads)
    if sizes is not None and len(sizes) != len(kernel):
        return None
    more = list(pads)
    for axis, (size, stride) in enumerate(zip(kernel, strides, strict=True)):
        before, end = pads[axis], axis + len(kernel)
        if sizes is None:
            more[end] += stride - 1
            if stride > 1 and more[end] >= size:  # a window more, of pads alone
                return None
            continue
        room = sizes[axis] + before + pads[end] - size
        reached = -(-room // stride) * stride
        if reached < sizes[axis] + before:  # else the last window would begin in the pads, and there is none
            more[end] += reached - room
    return {**kept, "auto_pad": "NOTSET", "pads": more, "ceil_mode": 0}
