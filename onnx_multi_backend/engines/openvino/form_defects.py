# SPDX-License-Identifier: Apache-2.0
"""Forms of ordinary operators that OpenVINO (2025.4, 2026.4) accepts and computes wrongly, each of which a rule writes in another way."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.passes.broadcast_axes import names_axis
from onnx_multi_backend.adapt.rules.channel_means import takes_channel_means
from onnx_multi_backend.adapt.rules.column_constants import columns
from onnx_multi_backend.adapt.rules.gather_nothing import gathers_nothing
from onnx_multi_backend.adapt.rules.gemm_without_c import reads_c_for_nothing
from onnx_multi_backend.adapt.rules.lower_bound import bounds_below_alone
from onnx_multi_backend.adapt.rules.mod import divides_back
from onnx_multi_backend.adapt.rules.non_max_suppression import may_be_zero
from onnx_multi_backend.adapt.rules.prelu import along_last_axis
from onnx_multi_backend.adapt.rules.range_end import may_run_backwards
from onnx_multi_backend.adapt.rules.reduce_functions import reduces_nothing
from onnx_multi_backend.adapt.rules.sequence_positions import is_open
from onnx_multi_backend.adapt.rules.slice_axes import slices_along_unknown_axes
from onnx_multi_backend.adapt.rules.split_sizes import splits_unevenly
from onnx_multi_backend.adapt.rules.transpose_nothing import moved
from onnx_multi_backend.adapt.rules.zero_attributes import has_a_zero
from onnx_multi_backend.adapt.site import INTEGER_BITS, Site


def softmax(site: Site) -> Defect | None:
    """Source: measured; opset 8, LogSoftmax and Hardmax are right.

    Of a tensor of unknown rank, an axis that counts from the end is trusted.
    """
    if site.opset not in (11, 12) or GUARDED in site.node.name:
        return None
    shape, axis = site.shape(site.input(0)), site.attribute("axis", 1)
    shape = site.shape(site.node.output[0]) if shape is None else shape
    if axis == -1 or (axis < 0 if shape is None else _alone(shape, axis % len(shape) if shape else 0)):
        return None
    return Defect(
        "before opset 13 it goes over `axis` and all axes behind it together, and OpenVINO over `axis` alone",
        wrong=True,
    )


def _alone(shape: list[int | None], axis: int) -> bool:
    """Whether there is nothing behind an axis."""
    return None not in shape[axis + 1 :] and math.prod(size or 0 for size in shape[axis + 1 :]) <= 1


def gather_empty(site: Site) -> Defect | None:
    """Source: measured; sizes that are known only at run time may be 0."""
    if gathers_nothing(site):
        return Defect("constant indices without elements end the process", wrong=True, deadly=True)
    return None


def gather(site: Site) -> Defect | None:
    shape, indices = site.shape(site.input(0)), site.constant(site.input(1))
    if not shape or indices is None:
        return None
    axis = site.attribute("axis", 0)
    size = shape[axis] if -len(shape) <= axis < len(shape) else None
    if size is not None and ((indices >= size) | (indices < -size)).any():
        return Defect("indices beyond the data give zeros, where ONNX has an error", wrong=True)
    return None


def gemm(site: Site) -> Defect | None:
    """Source: measured."""
    if reads_c_for_nothing(site):
        return Defect("with beta=0, C is multiplied by 0: NaN where it is NaN or infinite", wrong=True)
    if columns(site) == 2:  # with one or two rows, the inner size being 1 or 2
        return Defect("a constant for each of two columns of a product is left out", wrong=True)
    return None


def zeros(site: Site) -> Defect | None:
    """Source: measured; with every other operator a zero is a zero."""
    if has_a_zero(site):
        return Defect("an attribute that is zero is taken for its default", wrong=True)
    return None


def infinite(site: Site) -> Defect | None:
    """Source: measured with 2026.4; of an input of the model, of what no operator on elements makes, and of a fixed shape, it is right."""
    shape = site.shape(site.input(0))
    if shape is not None and None not in shape:
        return None
    return Defect(
        "where the shape is known only at run time, nothing that an operator on elements makes is infinite", wrong=True
    )


def positioned(site: Site) -> Defect | None:
    """Source: measured with 2026.4; of -1 SequenceAt is right, and SequenceErase of no position from the end."""
    return (
        Defect("a position from the end that is known only at run time is taken for another") if is_open(site) else None
    )


def split_into_many(site: Site) -> Defect | None:
    """Source: measured with 2026.4; some of them are refused alone."""
    return (
        None if _has_known_parts(site) else Defect("tensors of a number that only a run tells count as one", wrong=True)
    )


def _has_known_parts(site: Site) -> bool:
    """Whether it is known into how many tensors a SplitToSequence splits another."""
    if site.has_input(1):
        sizes = site.shape(site.input(1))
        if sizes != []:
            return sizes is not None and None not in sizes
        if not site.is_known(site.input(1)):
            return False
    shape, axis = site.shape(site.input(0)), site.attribute("axis", 0)
    return shape is not None and -len(shape) <= axis < len(shape) and shape[axis] is not None


def transpose(site: Site) -> Defect | None:
    """Source: measured; with sizes known only at run time, and where another axis than of 1 moves, it is right."""
    shapes = moved(site)
    if shapes is None:
        return None
    before, after = ([size for size in sizes if size != 1] for sizes in shapes)
    if before == after and any(new == 0 != old for old, new in zip(*shapes, strict=True)):
        return Defect(
            "of no elements, where axes of 1 alone move, it is a Reshape whose 0 keeps the input's size", wrong=True
        )
    return None


def bounded_below(site: Site) -> Defect | None:
    """Source: measured with 2025.4, of what OpenVINO makes itself (Shape, ArgMax, Range, ...), of Shape in open sizes alone; other types are right."""
    if bounds_below_alone(site) and site.elem_type(site.input(0)) == TensorProto.INT64:
        return Defect("of int64 that are computed, limited from below alone, the result is 0", wrong=True)
    return None


def lrn(site: Site) -> Defect | None:
    if site.attribute("size", 1) % 2 == 0:
        return Defect("a window of an even size has one channel too many", wrong=True)
    if not float(site.attribute("bias", 1.0)).is_integer():
        return Defect("its bias is cut to a whole number", wrong=True)
    return None


def normalized_channels(site: Site) -> Defect | None:
    """Source: measured; other sizes than 5 are right."""
    shape = site.shape(site.input(0))
    if site.attribute("size", 1) == 5 and (shape is None or None in shape[1:2]):
        return Defect("a number of channels known only at run time is refused when it runs")
    return None


def remainder(site: Site) -> Defect | None:
    return (
        Defect("the remainder is computed by dividing, rounding and multiplying back, which is less exact")
        if divides_back(site)
        else None
    )


def non_max_suppression(site: Site) -> Defect | None:
    if GUARDED not in site.node.name and may_be_zero(site):
        return Defect("with iou_threshold 0, boxes that do not overlap are left out", wrong=True)
    return None


def non_zero(site: Site) -> Defect | None:
    if site.elem_type(site.input(0)) in INTEGER_BITS and not site.is_known(site.input(0)):
        return Defect("a Cast of floating-point numbers to integers before it is left out", wrong=True)
    return None


def range_(site: Site) -> Defect | None:
    if GUARDED not in site.node.name and may_run_backwards(site):
        return Defect("a range whose end precedes its start is not empty", wrong=True)
    return None


def top_k(site: Site) -> Defect | None:
    """Of a provider, whose graph is not mended. Without `sorted` the order is left open, but not which of equal values are taken."""
    known = site.constant(site.input(0))
    if known is not None and np.unique(known).size == known.size:
        return None
    return Defect("among equal values the lower index need not come first", wrong=True)


def prelu(site: Site) -> Defect | None:
    """Source: measured for one to four axes; 2026.4 is wrong for three alone."""
    shape, slopes = site.shape(site.input(0)), site.shape(site.input(1))
    may_be_alike = slopes is None or None in slopes or shape is None or (None in shape and len(shape) == len(slopes))
    if may_be_alike and not site.is_known(site.input(1)):
        return Defect("in open sizes it is computed with the slope that another node makes, and lost", wrong=True)
    if not along_last_axis(site) or (shape is not None and len(shape) < 3):
        return None
    sizes = {shape[1] if shape else None, slopes[0] if slopes else None}
    if len(sizes) == 2 and None not in sizes:
        return None
    return Defect("slopes of the last axis are taken for those of the channels", wrong=True)


def reduced(site: Site) -> Defect | None:
    """Source: measured; the axes are an input of ReduceSum since opset 13, of the others since 18."""
    axes, shape = site.attribute("axes"), site.shape(site.input(0))
    all_of_them = shape is not None and len({axis % len(shape) for axis in axes or () if shape}) == len(shape)
    if site.op_type != "ReduceL2" and 13 <= site.opset < 18 and axes and not all_of_them:
        return Defect("the attribute axes is ignored: all axes are reduced", wrong=True)
    if reduces_nothing(site):
        return Defect("where no axis is reduced, elements are passed on as they are", wrong=True)
    return None


def exponentials(site: Site) -> Defect | None:
    return Defect(
        "exponentials are summed without subtracting the maximum: from 89 on the result is infinite", wrong=True
    )


def exponentials_of_nothing(site: Site) -> Defect | None:
    """Source: measured; of what is given at run time it is right."""
    x = site.input(0)
    if site.is_known(x) and 0 in (site.shape(x) or ()):
        return Defect("of a constant without elements it is refused, or ends the process", wrong=True, deadly=True)
    return None


def infinite_constant(site: Site) -> Defect | None:
    """Source: measured; of numbers that are given at run time it is right."""
    x = site.input(0)
    known = site.constant(x)
    finite = known is not None and np.isfinite(known.astype(np.float64)).all()
    if not site.is_known(x) or finite or site.elem_type(x) in INTEGER_BITS:
        return None
    return Defect("of a constant, an infinite maximum is subtracted from itself: NaN", wrong=True)


def lp_normalization(site: Site) -> Defect | None:
    return Defect("a small number is added to the norm")


def shrink(site: Site) -> Defect | None:
    if site.elem_type(site.input(0)) in INTEGER_BITS:
        return Defect("bias and lambd are rounded to integers", wrong=True)
    return Defect("infinities become NaN")


def sliced(site: Site) -> Defect | None:
    if slices_along_unknown_axes(site):
        return Defect("constant bounds along axes known only at run time end the process", wrong=True, deadly=True)
    return None


def channel_mean(site: Site) -> Defect | None:
    """Source: measured behind a pool, of images whose other sizes may be known or not; with AVX-512 of two or three channels, with AVX2 of any number."""
    if takes_channel_means(site):
        return Defect("the mean of each channel of a batch is right in the first run alone", wrong=True)
    return None


def aligned(site: Site) -> Defect | None:
    """Source: measured. Where ranks are known, the second operand was given more axes (`adapt.passes.broadcast_axes`)."""
    if names_axis(site.node, site.opset):
        return Defect("the axis that the second operand is aligned with is ignored", wrong=True)
    return None


def split(site: Site) -> Defect | None:
    """Source: measured."""
    if splits_unevenly(site):
        return Defect("a size that only a run tells, and the number of parts does not divide, is refused then")
    return None
