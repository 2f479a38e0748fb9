# SPDX-License-Identifier: Apache-2.0
"""Forms of pools, convolutions and padding that OpenVINO (2025.4, 2026.4) accepts and computes wrongly."""

from __future__ import annotations

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.pools import WRITTEN_OUT, axes_of, gaps_under_auto_pad, pads_of
from onnx_multi_backend.adapt.rules.constant_convolutions import remains_to_be_computed
from onnx_multi_backend.adapt.rules.conv_transpose_pads import SAME, pads_for_its_output
from onnx_multi_backend.adapt.rules.conv_turned import one_column
from onnx_multi_backend.adapt.rules.pad_axes import names_axes
from onnx_multi_backend.adapt.rules.pad_value import is_padded_at_run_time
from onnx_multi_backend.adapt.rules.pool_indices import indexes_eight_bits
from onnx_multi_backend.adapt.rules.pool_order import counts_columns
from onnx_multi_backend.adapt.rules.pool_windows import counts_padding
from onnx_multi_backend.adapt.rules.strided_points import strides_over_pads
from onnx_multi_backend.adapt.site import Site


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


def pooled_to_same(site: Site) -> Defect | None:
    """Source: measured; LpPool is right, and AveragePool with 2026.4."""
    if site.attribute("ceil_mode", 0) and max(gaps_under_auto_pad(site.node), default=0) > 0:
        return Defect(
            "with ceil_mode=1 and auto_pad, strides longer than the window lead to one beyond the image", wrong=True
        )
    return None


def averaged(site: Site) -> Defect | None:
    """Source: measured; ONNX Runtime and ONNX's evaluator count what the padded image holds."""
    if not site.attribute("ceil_mode", 0) or GUARDED in site.node.name or not counts_padding(site):
        return None
    if site.attribute("auto_pad", "NOTSET") not in WRITTEN_OUT:
        return None
    for size, reach, begin, end, stride in axes_of(site):
        if stride > 1 and (size is None or (size + begin + end - reach) % stride):
            return Defect(
                "with ceil_mode=1 and count_include_pad=1, what lies behind the padding is counted", wrong=True
            )
    return None


def normed(site: Site) -> Defect | None:
    """Source: measured; it takes the mean of what is there and multiplies it by the size of a whole window."""
    kernel = site.attribute("kernel_shape", [])
    if not site.attribute("ceil_mode", 0) or site.attribute("auto_pad", "NOTSET") not in WRITTEN_OUT:
        return None
    if any(stride > 1 for stride in site.attribute("strides", [1] * len(kernel))):
        return Defect("with ceil_mode=1, a last window that ends beyond the image counts as a whole one", wrong=True)
    return None


def strided_points(site: Site) -> Defect | None:
    """Source: measured; OpenVINO takes the strides over to what is before it, and the pads stay."""
    if strides_over_pads(site):
        return Defect("with a kernel of 1, pads and strides, the result has other sizes", wrong=True)
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
    if pads_for_its_output(site):
        return Defect("pads for an output_shape that differ from side to side are taken for one another", wrong=True)
    return None


def convolved(site: Site) -> Defect | None:
    """Source: measured; of other operators (Gemm, BatchNormalization, MatMul, ...) it is right."""
    if remains_to_be_computed(site):
        return Defect("what is added to a convolution of constants is added again in each run", wrong=True)
    return None
