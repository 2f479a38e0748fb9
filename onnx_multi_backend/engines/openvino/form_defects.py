# SPDX-License-Identifier: Apache-2.0
"""Forms of ordinary operators that OpenVINO (2025.4, 2026.4) accepts and computes wrongly, each of which a rule writes in another way."""

from __future__ import annotations

import math

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules.constant_convolutions import remains_to_be_computed
from onnx_multi_backend.adapt.rules.conv_transpose_pads import SAME
from onnx_multi_backend.adapt.rules.conv_turned import one_column
from onnx_multi_backend.adapt.rules.dequantize_wide import holds_its_constants, is_wide
from onnx_multi_backend.adapt.rules.gather_nothing import gathers_nothing
from onnx_multi_backend.adapt.rules.gemm_without_c import reads_c_for_nothing
from onnx_multi_backend.adapt.rules.mod import divides_back
from onnx_multi_backend.adapt.rules.named_type import names_its_type
from onnx_multi_backend.adapt.rules.non_max_suppression import may_be_zero
from onnx_multi_backend.adapt.rules.pad_axes import names_axes
from onnx_multi_backend.adapt.rules.pad_value import is_padded_at_run_time
from onnx_multi_backend.adapt.rules.pool_indices import indexes_eight_bits
from onnx_multi_backend.adapt.rules.pool_order import counts_columns
from onnx_multi_backend.adapt.rules.pool_windows import WRITTEN_OUT, counts_padding, pads_of
from onnx_multi_backend.adapt.rules.prelu import along_last_axis
from onnx_multi_backend.adapt.rules.quantize import made_type
from onnx_multi_backend.adapt.rules.quantized_products import scales_channels
from onnx_multi_backend.adapt.rules.range_end import may_run_backwards
from onnx_multi_backend.adapt.rules.reduce_functions import reduces_nothing
from onnx_multi_backend.adapt.rules.run_time_scales import scaled_at_run_time
from onnx_multi_backend.adapt.rules.slice_axes import slices_along_unknown_axes
from onnx_multi_backend.adapt.rules.zero_attributes import has_a_zero
from onnx_multi_backend.adapt.single_node import needed_in
from onnx_multi_backend.adapt.site import INTEGER_BITS, Site
from onnx_multi_backend.models.graph_walk import subgraphs

_SIXTEEN = (TensorProto.INT16, TensorProto.UINT16)

#: The lowest integer of the types of 8 bits.
_LOWEST: dict[int, int] = {TensorProto.INT8: -128, TensorProto.UINT8: 0}

#: How far above its type's lowest integer a zero point lies for which OpenVINO may take the two ends of the range for one.
_MIXED_UP = frozenset({34, 102, 128, 132, 136, 153, 210, 221})

#: The activations of OpenVINO's own layers, which for RNN may be any.
_USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}


def softmax(site: Site) -> Defect | None:
    """Source: measured; opset 8, LogSoftmax and Hardmax are right.

    Of a tensor of unknown rank, an axis that counts from the end is trusted.
    """
    if site.opset not in (11, 12) or GUARDED in site.node.name:
        return None
    shape, axis = site.shape(site.input(0)), site.attribute("axis", 1)
    if axis == -1 or (axis < 0 if shape is None else _alone(shape, axis % len(shape) if shape else 0)):
        return None
    return Defect("the axes behind `axis`, which belong to it before opset 13, are taken apart", wrong=True)


def _alone(shape: list[int | None], axis: int) -> bool:
    """Whether there is nothing behind an axis."""
    return None not in shape[axis + 1 :] and math.prod(size or 0 for size in shape[axis + 1 :]) <= 1


def gather_empty(site: Site) -> Defect | None:
    """Source: measured; sizes that are known only at run time may be 0."""
    if gathers_nothing(site):
        return Defect("gathering nothing, which is known, ends the process", wrong=True, deadly=True)
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
    return None


def zeros(site: Site) -> Defect | None:
    """Source: measured; with every other operator a zero is a zero."""
    if has_a_zero(site):
        return Defect("an attribute that is zero is taken for its default", wrong=True)
    return None


def lrn(site: Site) -> Defect | None:
    if site.attribute("size", 1) % 2 == 0:
        return Defect("a window of an even size has one channel too many", wrong=True)
    return None


def normalized_channels(site: Site) -> Defect | None:
    """Source: measured; other sizes than 5 are right."""
    shape = site.shape(site.input(0))
    if site.attribute("size", 1) == 5 and (shape is None or None in shape[1:2]):
        return Defect("a number of channels known only at run time is refused when it runs")
    return None


def remainder(site: Site) -> Defect | None:
    return Defect("the remainder is what dividing, rounding and multiplying back leave") if divides_back(site) else None


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


def prelu(site: Site) -> Defect | None:
    """Source: measured for one to four axes; 2026.4 is wrong for three alone."""
    shape, slopes = site.shape(site.input(0)), site.shape(site.input(1))
    if not along_last_axis(site) or (shape is not None and len(shape) < 3):
        return None
    sizes = {shape[1] if shape else None, slopes[0] if slopes else None}
    if len(sizes) == 2 and None not in sizes:
        return None
    return Defect("slopes of the last axis are taken for those of the channels", wrong=True)


def quantize_wide(site: Site) -> Defect | None:
    if made_type(site) in _SIXTEEN:
        return Defect("quantizing to 16 bits is left out, and with it the limits of the type", wrong=True)
    return None


def quantize_as_named(site: Site) -> Defect | None:
    """Source: measured."""
    if names_its_type(site):
        return Defect("output_dtype is ignored: without a zero point, the result is limited as uint8 is", wrong=True)
    return None


def quantize_along(site: Site) -> Defect | None:
    """Source: measured; with more axes, and along the last, it is right or refused."""
    shape, scales = site.shape(site.input(0)), site.shape(site.input(1))
    if shape is None or None not in shape or len(shape) != 2 or site.attribute("axis", 1) % 2 or scales in ([], [1]):
        return None
    return Defect("where the shape is known only at run time, scales along axis 0 are taken along axis 1", wrong=True)


def quantized_at_run_time(site: Site) -> Defect | None:
    """Source: measured with 2025.4 and 2026.4, in one process of fifty, and ``src/common/snippets/src/pass/hash.cpp``.

    The ends of the range are two products of the scale and a constant. OpenVINO compiles those of one hash once, and the hash of
    some pairs of constants is the same, by the addresses at which the process has loaded its libraries.
    """
    lowest = _LOWEST.get(made_type(site))
    if lowest is None or site.shape(site.input(1)) not in ([], [1]) or site.is_known(site.input(1)):
        return None
    zero = site.constant(site.input(2)) if site.has_input(2) else np.zeros(1)
    if zero is None or zero.size != 1 or int(zero.flat[0]) - lowest not in _MIXED_UP:
        return None
    return Defect("of a scale known only at run time, both ends of the range may be taken for one", wrong=True)


def padded(site: Site) -> Defect | None:
    """Source: measured; fewer axes than the tensor has are refused, at load or when it runs."""
    if names_axes(site):
        return Defect("axes is ignored: the pads are taken for those of the first axes", wrong=True)
    return None


def padded_at_run_time(site: Site) -> Defect | None:
    """Source: measured; it is right where the shape or the pads are known only at run time."""
    return padded_by_computed(site) if site.is_known(site.input(1)) else None


def padded_by_computed(site: Site) -> Defect | None:
    """Source: the same. Pads that are computed from shapes may become known."""
    if is_padded_at_run_time(site) and GUARDED not in site.node.name:
        return Defect("a value known only at run time is taken for 0", wrong=True)
    return None


def centered(site: Site) -> Defect | None:
    """Source: measured; ONNX Runtime puts the function's body in its place, which pads along axes."""
    axes, rank = site.attribute("axes"), site.rank(site.input(0))
    if axes and (rank is None or [a % rank if rank else a for a in axes] != list(range(rank))):
        return Defect("axes is ignored where it is padded: the pads are taken for those of the first axes", wrong=True)
    return None


def indexed(site: Site) -> Defect | None:
    """Source: measured."""
    if counts_columns(site):
        return Defect("with storage_order=1 the axes of Indices are turned round, not what they count", wrong=True)
    if indexes_eight_bits(site):
        return Defect("where the greatest is the lowest of the type, its index is that of another window", wrong=True)
    shape = site.shape(site.input(0))
    if site.has_output(1) and site.attribute("auto_pad") in SAME and (shape is None or None in shape[2:]):
        return Defect("with Indices and a shape known only at run time, auto_pad is taken for no padding", wrong=True)
    return None


def pooled(site: Site) -> Defect | None:
    """Source of the sizes: MaxPool's documentation and ``convPoolShapeInference``, which drops windows in the padding."""
    kernel = site.attribute("kernel_shape", [])
    if not site.attribute("ceil_mode", 0) or site.attribute("auto_pad", "NOTSET") not in WRITTEN_OUT:
        return None
    if GUARDED in site.node.name:
        return None
    count = len(kernel)
    strides, dilations = (site.attribute(name, [1] * count) for name in ("strides", "dilations"))
    pads = pads_of(site, count)
    if len(pads) != 2 * count:
        return None  # it is not valid
    sizes = (site.shape(site.input(0)) or [None] * (count + 2))[2:]
    for i, size in enumerate(sizes):
        reach, begin, end, stride = dilations[i] * (kernel[i] - 1) + 1, pads[i], pads[count + i], strides[i]
        if size is None:
            beyond = stride - 1 + end >= reach
        else:
            beyond = -(-(size + begin + end - reach) // stride) * stride >= size + begin
        if beyond:
            return Defect("with ceil_mode=1, a last window that starts beyond the image is kept", wrong=True)
    return None


def averaged(site: Site) -> Defect | None:
    """Source: measured; ONNX Runtime and ONNX's evaluator count what the padded image holds."""
    if not site.attribute("ceil_mode", 0) or GUARDED in site.node.name or not counts_padding(site):
        return None
    kernel = site.attribute("kernel_shape", [])
    count = len(kernel)
    strides, dilations = (site.attribute(name, [1] * count) for name in ("strides", "dilations"))
    pads, sizes = pads_of(site, count), (site.shape(site.input(0)) or [None] * (count + 2))[2:]
    if site.attribute("auto_pad", "NOTSET") not in WRITTEN_OUT or len(pads) != 2 * count or len(sizes) != count:
        return None
    for i, size in enumerate(sizes):
        rest = None if size is None else size + pads[i] + pads[count + i] - dilations[i] * (kernel[i] - 1) - 1
        if strides[i] > 1 and (rest is None or rest % strides[i]):
            return Defect(
                "with ceil_mode=1 and count_include_pad=1, what lies behind the padding is counted", wrong=True
            )
    return None


def column(site: Site) -> Defect | None:
    """Source: measured, with two threads or more; ConvInteger and QLinearConv use the same kernels."""
    if one_column(site):
        return Defect(
            "of one channel, a single column is written to other places, which may end the process", wrong=True
        )
    return None


def conv_transpose(site: Site) -> Defect | None:
    shape = site.shape(site.input(0))
    if site.attribute("auto_pad", "NOTSET") in SAME and (shape is None or None in shape):
        return Defect("where the shape is known only at run time, auto_pad is taken for the larger output", wrong=True)
    return None


def convolved(site: Site) -> Defect | None:
    """Source: measured; of other operators (Gemm, BatchNormalization, MatMul, ...) it is right."""
    if remains_to_be_computed(site):
        return Defect("what is convolved of constants is added to in each run", wrong=True)
    return None


def reduced(site: Site) -> Defect | None:
    """Source: measured; the axes are an input of ReduceSum since opset 13, of the others since 18."""
    if site.op_type != "ReduceL2" and 13 <= site.opset < 18 and site.attribute("axes"):
        return Defect("the attribute axes is ignored: all axes are reduced", wrong=True)
    if reduces_nothing(site):
        return Defect("where no axis is reduced, elements are passed on as they are", wrong=True)
    return None


def exponentials(site: Site) -> Defect | None:
    return Defect(
        "exponentials are summed without subtracting the maximum: from 89 on the result is infinite", wrong=True
    )


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


def matmul_integer(site: Site) -> Defect | None:
    if site.rank(site.input(0)) == 1:
        return Defect("the axis that a vector is given is left in the result", wrong=True)
    return None


def dequantized(site: Site) -> Defect | None:
    """Source: measured; what is given at run time is computed in float32, but for bfloat16."""
    if is_wide(site) and (site.elem_type(site.input(1)) == TensorProto.BFLOAT16 or not holds_its_constants(site)):
        return Defect("integers are limited and rounded to 16 bits before they are scaled", wrong=True)
    return None


def scaled(site: Site) -> Defect | None:
    """Source: measured; in MatMul, Gemm and Conv behind it alone, and of integers of 16 and 32 bits in none."""
    if site.elem_type(site.input(0)) in (TensorProto.INT16, TensorProto.UINT16, TensorProto.INT32):
        return None
    if scaled_at_run_time(site):
        return Defect("constant weights with a scale known only at run time are scaled again in every run", wrong=True)
    return None


def quantized_channels(site: Site) -> Defect | None:
    """Source: measured; where the numbers of channels differ it is refused."""
    if scales_channels(site):
        return Defect("scales of the output channels are taken for those of the input channels", wrong=True)
    return None


def shrink(site: Site) -> Defect | None:
    if site.elem_type(site.input(0)) in INTEGER_BITS:
        return Defect("bias and lambd are rounded to integers", wrong=True)
    return Defect("infinities become NaN")


def sliced(site: Site) -> Defect | None:
    if slices_along_unknown_axes(site):
        return Defect("constant bounds along axes known only at run time end the process", wrong=True, deadly=True)
    return None


def lengths(site: Site) -> Defect | None:
    """Source: measured; what OpenVINO has no layer for, it writes as a loop, which is right."""
    shape, usual = site.shape(site.input(0)), _USUAL.get(site.op_type)
    functions = [name.decode() for name in site.attribute("activations", [])]
    if site.attribute("clip", 0) or (
        usual and functions and any(functions[i] != usual[i % len(usual)] for i in range(len(functions)))
    ):
        return None
    if site.has_input(4) and (shape is None or None in shape):
        return Defect("sequence_lens is ignored where the shape is known only at run time", wrong=True)
    return None


def branches(site: Site) -> Defect | None:
    """Source: measured; what is known at load, and branches whose shapes are all fixed, are right. What no result needs does not count."""
    if site.constant(site.input(0)) is not None:
        return None
    needed = [name for graph in subgraphs(site.node) for name in needed_in(graph)]
    read = [v.name for v in site.model.graph.input if v.name in needed]
    shapes = [site.shape(name) for name in (*site.node.output, *read) if name]
    if any(shape is None or None in shape for shape in shapes):
        return Defect(
            "where shapes are known only at run time, a branch that changes from run to run is not followed", wrong=True
        )
    return None
