# SPDX-License-Identifier: Apache-2.0
"""Axes added to a tensor that is known to have no elements, or taken from it, where only a run tells its other sizes."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.engines.openvino import runtime


def reshaped(op: Any) -> bool:
    x = op.input_value(0)
    shape = x.get_partial_shape()
    if not _is_open_and_empty(shape) or op.get_input_size() < 2:
        return False
    axes = op.input_value(1).get_node()
    if axes.get_type_name() != "Constant":
        return False
    named, rank, ops = axes.get_vector(), len(shape), runtime.load().opset8
    if op.get_type_name() == "Unsqueeze":
        added = {int(axis) % (rank + len(named)) for axis in named}
        old = iter(range(rank))
        places = [rank if i in added else next(old) for i in range(rank + len(added))]
    else:
        gone = {int(axis) % rank for axis in named}
        places = [i for i in range(rank) if i not in gone]
    integer = runtime.load().Type.i64
    sizes = ops.concat([ops.shape_of(x), ops.constant([1], integer)], 0)
    taken = ops.gather(sizes, ops.constant(places, integer), 0)
    # The larger of a size and 0, since a size that is only passed on becomes a 0 that stands for "as before", beside a size of 0.
    result = ops.reshape(x, ops.maximum(taken, ops.constant(0, integer)), special_zero=False)
    result.set_friendly_name(op.get_friendly_name())
    runtime.load().utils.replace_node(op, result)
    return True


def _is_open_and_empty(shape: Any) -> bool:
    if shape.rank.is_dynamic or shape.is_static:
        return False
    return any(size.is_static and size.get_length() == 0 for size in shape)
