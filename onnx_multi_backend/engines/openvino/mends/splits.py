# SPDX-License-Identifier: Apache-2.0
"""Splits into equal parts, of a size that their number need not divide."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.engines.openvino import runtime


def of_any_size(op: Any) -> bool:
    """The sizes of the parts are computed in the run, where OpenVINO does not know what is split; the last may be smaller."""
    x, axis = op.input_values()
    shape, known = x.get_partial_shape(), axis.get_node()
    if shape.rank.is_dynamic or known.get_type_name() != "Constant":
        return False
    place = int(known.get_data().item())
    if shape[place].is_static:
        return False
    ov = runtime.load()
    ops, kind, parts = ov.opset8, ov.Type.i64, op.get_output_size()
    size = ops.gather(ops.shape_of(x), ops.constant([place % len(shape)], kind), ops.constant(0, kind))
    whole = ops.divide(ops.add(size, ops.constant([parts - 1], kind)), ops.constant([parts], kind))
    left = ops.subtract(size, ops.multiply(whole, ops.constant(list(range(parts)), kind)))
    lengths = ops.minimum(whole, ops.maximum(left, ops.constant([0], kind)))
    made = ops.variadic_split(x, ops.constant(place, kind), lengths)
    made.set_friendly_name(op.get_friendly_name())
    for old, new in zip(op.outputs(), made.outputs(), strict=True):
        new.set_names(old.get_names())
        for reader in old.get_target_inputs():
            reader.replace_source_output(new)
    return True
