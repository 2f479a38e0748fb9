# SPDX-License-Identifier: Apache-2.0
"""Nodes that OpenVINO has in a right form, where the frontend takes another."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from onnx import TensorProto

from onnx_multi_backend.adapt.operators.extremes import LARGEST
from onnx_multi_backend.engines.openvino import runtime


def stable(op: Any) -> bool:
    sort = op.get_attributes()["sort"]
    if sort == "index":
        return False
    if sort == "none":  # any order will do then, and only a sort can be stable
        op.set_attribute("sort", "value")
    op.set_attribute("stable", True)
    return True


def over_all_behind(op: Any) -> bool:
    """Source: Softmax's documentation in opset 11. The frontend takes no tensor of unknown rank."""
    x = op.input_value(0)
    shape = list(x.get_partial_shape())
    axis = op.get_attributes()["axis"] % max(len(shape), 1)
    if all(size == 1 for size in shape[axis + 1 :]):
        return False
    ov = runtime.load()
    ops = ov.opset8
    rows = ops.reshape(x, ops.constant([0] * axis + [-1], ov.Type.i64), special_zero=True)
    result = ops.reshape(ops.softmax(rows, axis), ops.shape_of(x), special_zero=False)
    result.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, result)
    return True


def not_zero(op: Any) -> bool:
    """Looks for a Cast of numbers to integers before it: the plugin would have the node read what is cast first, of several Casts too."""
    x = op.input_value(0)
    if not any(cast.input_value(0).get_element_type().is_real() and _is_whole(cast) for cast in _casts_before(x)):
        return False
    ops = runtime.load().opset8
    op.input(0).replace_source_output(ops.not_equal(x, ops.constant(0, x.get_element_type())).output(0))
    return True


def _casts_before(value: Any) -> Iterator[Any]:
    """The Casts that a value comes of, with nothing between them."""
    node = value.get_node()
    while (kind := node.get_type_name()) in ("Convert", "ConvertLike", "Identity"):
        if kind != "Identity":
            yield node
        node = node.input_value(0).get_node()


def _is_whole(cast: Any) -> bool:
    made = cast.get_output_element_type(0)
    return not made.is_real() and made != runtime.load().Type.boolean


def row_by_row(op: Any) -> bool:
    """Of one element in two axes or more: it is at 0 along each, or nowhere, as it is along a single one."""
    x = op.input_value(0)
    shape = x.get_partial_shape()
    if not shape.is_static or len(shape) < 2 or any(size.get_length() != 1 for size in shape):
        return False
    ov = runtime.load()
    ops = ov.opset8
    row = ops.non_zero(
        ops.reshape(x, ops.constant([1], ov.Type.i64), special_zero=False), op.get_attributes()["output_type"]
    )
    result = ops.concat([row] * len(shape), 0)
    result.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, result)
    return True


#: OpenVINO's names of the narrower types; float64 is computed in float32.
_HALVES = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}


def beyond_numbers(op: Any) -> bool:
    """Of what a run gives in a fixed shape, IsInf is right."""
    x = op.input_value(0)
    if x.get_node().get_type_name() == "Parameter" and x.get_partial_shape().is_static:
        return False
    ov = runtime.load()
    ops, signs = ov.opset8, op.get_attributes()
    if x.get_element_type().to_string() == "f64":
        x = ops.convert(x, "f32").output(0)
    kind = x.get_element_type()
    largest = LARGEST[_HALVES.get(kind.to_string(), TensorProto.FLOAT)]
    found = []
    if signs["detect_positive"]:
        found.append(ops.less(ops.constant(largest, kind), x))
    if signs["detect_negative"]:
        found.append(ops.less(x, ops.constant(-largest, kind)))
    result = functools.reduce(ops.logical_or, found) if found else ops.less(x, x)  # which is never true
    result.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, result)
    return True
