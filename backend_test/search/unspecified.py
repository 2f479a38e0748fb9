# SPDX-License-Identifier: Apache-2.0
"""Forms for which ONNX does not say what is right; a difference there is no fault.

- A float that is NaN, infinite or out of range, made an integer: numpy, ONNX Runtime and OpenVINO each have their own.
- What DynamicQuantizeLinear makes of numbers that are not finite, and the scale that it has for zeros alone: 0 by its formula, 1 in ONNX Runtime,
  1 / 255 in ONNX's evaluator.
- The order of NaN beside numbers (ArgMax, ArgMin, TopK, Hardmax, Unique).
- The grid of one place along an axis with align_corners=1 (AffineGrid): the step is a quotient by 0.
- The determinant of a matrix that is not finite, or whose products are not: what is infinite and what is NaN depends on the order of the steps.
- A Resize with align_corners and a scale that does not give a whole length: before 1.24, ONNX's evaluator and cases count with the length
  that the scale gives; the engines, and ONNX 1.24, with the one that the result has.
- An integer to the power of a negative one, and the logarithm of integers as an integer.
- A Gemm of integers whose products leave the type, multiplied by an alpha or beta that is a float: a float out of range, made an integer.
- ReduceL2 of integers whose squares add up to more than the type holds: they are added in the type, in int64 or in float.
- Attention of float16 whose scores leave the type: infinite where they are summed in float16, and finite in float32 once they are scaled.
- A reduction along an axis that is named twice, and Attention with a negative `softcap`, an `is_causal` or `qk_matmul_output_mode` that ONNX
  does not define, or a `softmax_precision` that is no type of floats: engines take them for something, or refuse.
- Celu with an alpha of 0, by which it divides, and scales of quantized values that are not positive.
- A limit that a Clip leaves out, where it may be an input: the largest finite number by ONNX's text, none by its evaluator. ONNX Runtime has both, by type.
- The order of what a TopK finds that need not be sorted, and a TopK of a negative number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.inliner
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper

from backend_test.search.graphs.values import np_dtype
from onnx_multi_backend.models.graph_walk import subgraphs

_ORDERED = ("ArgMax", "ArgMin", "TopK", "Hardmax", "Unique", "NonMaxSuppression")
_LOGARITHMS = ("ReduceLogSum", "ReduceLogSumExp")
#: The places of an operator's scales.
_SCALES = {"QuantizeLinear": (1,), "DequantizeLinear": (1,), "QLinearConv": (1, 4, 6), "QLinearMatMul": (1, 4, 6)}
_NO_LOGARITHM = "the logarithm of an integer is none"
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
_INTEGERS = (TensorProto.INT32, TensorProto.INT64, TensorProto.UINT32, TensorProto.UINT64)


def unspecified(model: ModelProto, values: Sequence[Mapping[str, Any]]) -> str:
    """Why a graph's result is not specified; empty where it is.

    Parameters
    ----------
    values : sequence of mapping
        What every value of the main graph holds in each run.
    """
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    for node in model.graph.node:
        for held in values:
            operands = [held.get(name, constants.get(name)) for name in node.input]
            reason = _of_node(node, operands)
            if reason:
                return f"{node.op_type}: {reason}"
    return _by_types(model)


def _by_types(model: ModelProto) -> str:
    """The same of nodes in subgraphs and functions, as far as types tell: what they read in a run is not known."""
    if not model.functions and not any(list(subgraphs(node)) for node in model.graph.node):
        return ""
    flat = onnx.inliner.inline_local_functions(model) if model.functions else model
    graphs = [onnx.shape_inference.infer_shapes(flat).graph]
    kinds: dict[str, int] = {}
    for graph in graphs:
        typed = (*graph.value_info, *graph.input, *graph.output)
        kinds.update((value.name, value.type.tensor_type.elem_type) for value in typed)
        kinds.update((tensor.name, tensor.data_type) for tensor in graph.initializer)
        graphs += [inner for node in graph.node for inner in subgraphs(node)]
    for graph in graphs:
        for node in graph.node:
            if node.op_type in _LOGARITHMS and kinds.get(node.input[0]) in _INTEGERS:
                return f"{node.op_type}: {_NO_LOGARITHM}"
    return ""


def _of_node(node: NodeProto, operands: list[Any]) -> str:
    first = operands[0] if operands else None
    if reason := _not_defined(node, operands):
        return reason
    if not isinstance(first, np.ndarray) or first.dtype.kind not in "fViu":
        return ""
    with np.errstate(all="ignore"):
        wide = first.astype(np.float64) if first.dtype.kind in "fV" else None
    if node.op_type in ("Cast", "CastLike", "QuantizeLinear") and wide is not None:
        return _to_integer(node, wide, operands)
    if node.op_type == "DynamicQuantizeLinear" and wide is not None and not (np.isfinite(wide).all() and wide.any()):
        return "the scale of zeros alone, or of what is not finite"
    if node.op_type in _ORDERED and wide is not None and np.isnan(wide).any():
        return "the order of NaN"
    if node.op_type == "Det" and wide is not None and not _has_finite_products(first.dtype, wide):
        return "products beyond what the type holds"
    if node.op_type == "AffineGrid" and any(a.name == "align_corners" and a.i for a in node.attribute):
        sizes = operands[1]
        return "the grid of one place" if isinstance(sizes, np.ndarray) and (sizes[2:] == 1).any() else ""
    if node.op_type == "Resize" and _cuts_a_length(node, first, operands):
        return "align_corners with a length that is cut"
    if node.op_type == "Pow" and first.dtype.kind == "i" and _negative(operands[1]):
        return "an integer to the power of a negative number"
    if node.op_type in _LOGARITHMS and first.dtype.kind in "iu":
        return _NO_LOGARITHM
    if (
        node.op_type == "Gemm"
        and first.dtype.kind in "iu"
        and any(a.name in ("alpha", "beta") and a.f != 1 for a in node.attribute)
    ):
        inside = _largest_product(operands, node) <= np.iinfo(first.dtype).max
        return "" if inside else "products beyond what the integer holds, and a float"
    if node.op_type == "ReduceL2" and first.dtype.kind in "iu":
        inside = _largest(first) ** 2 * first.size <= np.iinfo(first.dtype).max
        return "" if inside else "a sum of squares beyond what the integer holds"
    if node.op_type == "Attention" and first.dtype == np.float16:
        return (
            ""
            if _largest_product(operands, node) <= float(np.finfo(first.dtype).max)
            else "scores beyond what float16 holds"
        )
    return ""


def _not_defined(node: NodeProto, operands: list[Any]) -> str:
    """What ONNX says nothing about, whatever the elements are."""
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type.startswith("Reduce") and len(operands) > 1 and isinstance(operands[1], np.ndarray):
        rank = np.ndim(operands[0])
        axes = [int(axis) + rank * (axis < 0) for axis in operands[1].reshape(-1)]
        return "an axis that is named twice" if len({*axes}) < len(axes) else ""
    if node.op_type == "Attention":
        precision = given.get("softmax_precision", TensorProto.FLOAT)
        known = given.get("softcap", 0.0) >= 0 and given.get("qk_matmul_output_mode", 0) in range(4)
        known = known and given.get("is_causal", 0) in (0, 1)
        return "" if known and precision in _FLOATS else "an attribute that ONNX does not define"
    if node.op_type == "Celu":
        return "" if given.get("alpha", 1.0) else "a quotient by an alpha of 0"
    if node.op_type in _SCALES:
        scales = [operands[place] for place in _SCALES[node.op_type] if place < len(operands)]
        return "a scale that is not positive" if any(map(_not_positive, scales)) else ""
    if node.op_type == "Clip" and len(node.input) > 1 and not all((*node.input, "")[1:3]):
        first = operands[0]
        infinite = (
            isinstance(first, np.ndarray) and first.dtype.kind in "fV" and np.isinf(first.astype(np.float64)).any()
        )
        return "a limit that is left out, and an infinity" if infinite else ""
    if node.op_type == "TopK":
        negative = len(operands) > 1 and _negative(operands[1])
        return "a negative number of elements" if negative else "" if given.get("sorted", 1) else "the order"
    return ""


def _cuts_a_length(node: NodeProto, image: np.ndarray, operands: list[Any]) -> bool:
    """Whether scales are given with align_corners, and a length is no whole number."""
    given = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    scales = operands[2] if len(operands) > 2 else None
    if given.get("coordinate_transformation_mode") != b"align_corners" or not isinstance(scales, np.ndarray):
        return False
    axes = given.get("axes", range(image.ndim))
    if scales.size != len(axes):
        return False
    lengths = np.array([image.shape[axis] for axis in axes]) * scales.astype(np.float64)
    return bool((lengths != np.floor(lengths)).any())


def _largest_product(operands: list[Any], node: NodeProto) -> float:
    """What no sum of products of the first two operands exceeds, scaled by Gemm's `alpha` and `beta`."""
    factors = {a.name: abs(a.f) for a in node.attribute}
    largest = [_largest(operand) for operand in operands[:3]]
    summed = max((size for operand in operands[:2] for size in np.shape(operand)), default=1)
    product = largest[0] * largest[1] * summed * factors.get("alpha", 1.0)
    return product + (largest[2] * factors.get("beta", 1.0) if node.op_type == "Gemm" and len(largest) > 2 else 0.0)


def _largest(operand: Any) -> float:
    if not isinstance(operand, np.ndarray):
        return 0.0
    with np.errstate(all="ignore"):
        finite = operand.astype(np.float64)
    return float(np.abs(finite[np.isfinite(finite)]).max(initial=0.0))


def _has_finite_products(dtype: np.dtype, matrices: np.ndarray) -> bool:
    """Whether every product of as many elements of a matrix as it has rows is finite."""
    with np.errstate(all="ignore"):
        largest = np.abs(matrices).max(initial=0.0) ** matrices.shape[-1]
    return bool(largest < float(ml_dtypes.finfo(dtype).max))


def _negative(operand: Any) -> bool:
    return isinstance(operand, np.ndarray) and operand.dtype.kind in "if" and bool((operand < 0).any())


def _not_positive(operand: Any) -> bool:
    return isinstance(operand, np.ndarray) and bool((operand.astype(np.float64) <= 0).any())


def _to_integer(node: NodeProto, wide: np.ndarray, operands: list[Any]) -> str:
    if node.op_type == "QuantizeLinear":
        return "NaN is quantized" if np.isnan(wide).any() else ""
    if node.op_type == "CastLike":
        dtype = operands[1].dtype if isinstance(operands[1], np.ndarray) else np.dtype(np.float32)
    else:
        to = next((a.i for a in node.attribute if a.name == "to"), TensorProto.FLOAT)
        dtype = np_dtype(to)
    try:
        info = ml_dtypes.iinfo(dtype)  # of the integers of numpy, and of those of 2 and 4 bits
    except ValueError:
        return ""
    with np.errstate(all="ignore"):
        inside = (np.trunc(wide) >= float(info.min)) & (np.trunc(wide) <= float(info.max)) & (np.abs(wide) < 2.0**63)
    return "" if inside.all() else "a number beyond the integer's range"
