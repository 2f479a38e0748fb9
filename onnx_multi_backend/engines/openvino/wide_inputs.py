# SPDX-License-Identifier: Apache-2.0
"""Inputs of 64 bits, and uint32, that are only compared with small constants or asked for zeros: OpenVINO keeps their low 32 bits.

What it converts to floating point straight from the input is right (seen with 2026.4), and comes to the same
(`onnx_multi_backend.adapt.intervals.wide_inputs`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.intervals.values import SMALL
from onnx_multi_backend.engines.openvino import runtime

_COMPARISONS = frozenset({"Equal", "NotEqual", "Greater", "GreaterEqual", "Less", "LessEqual"})


def in_float(read: Any) -> tuple[Adaptation, ...]:
    """Have such readers of inputs read floating-point numbers, in a read model."""
    ov = runtime.load()
    ops, wide = ov.opset8, (ov.Type.i64, ov.Type.u64, ov.Type.u32)
    changes = []
    for parameter in read.get_parameters():
        if parameter.get_element_type() not in wide:
            continue
        readers = list(_readers(parameter))
        asking = {reader.get_node().get_instance_id(): reader.get_node() for reader in readers if _asks(reader)}
        if not asking or not all(_asks(reader) or _sees_no_numbers(reader) for reader in readers):
            continue
        number = ops.convert(parameter, "f32")
        for node in asking.values():
            kind = node.get_type_name()
            if kind in _COMPARISONS:
                for i in (0, 1):
                    own = node.input_value(i).get_node().get_type_name() != "Constant"
                    value = number if own else ops.convert(node.input_value(i), "f32")
                    node.input(i).replace_source_output(value.output(0))
            elif kind == "NonZero":
                node.input(0).replace_source_output(ops.not_equal(number, ops.constant(0, ov.Type.f32)).output(0))
            else:
                truth = ops.not_equal(number, ops.constant(0, ov.Type.f32))
                truth.set_friendly_name(node.get_friendly_name())
                ov.utils.replace_node(node, truth)
            reason = "of an input, OpenVINO keeps the low 32 bits"
            where = f"{kind} {node.get_friendly_name()!r}"
            changes.append(Adaptation("mend_frontend", where, "reads its input in floating point", reason))
    return tuple(changes)


def _readers(node: Any) -> Iterator[Any]:
    for reader in node.output(0).get_target_inputs():
        if reader.get_node().get_type_name() == "Identity":
            yield from _readers(reader.get_node())
        else:
            yield reader


def _asks(reader: Any) -> bool:
    """Whether a layer asks for zeros, or compares its input with itself or a small constant."""
    node = reader.get_node()
    kind = node.get_type_name()
    if kind == "NonZero":
        return True
    if kind == "Convert":
        return bool(node.get_output_element_type(0) == runtime.load().Type.boolean)
    if kind not in _COMPARISONS:
        return False
    others = [node.input_value(i).get_node() for i in (0, 1)]
    if len({other.get_instance_id() for other in others}) == 1:
        return True
    constant = others[1 - reader.get_index()]
    return constant.get_type_name() == "Constant" and bool((abs(constant.get_data().astype("f8")) < SMALL).all())


def _sees_no_numbers(reader: Any) -> bool:
    """Whether a layer looks at the shape or the type alone, or converts to floating point."""
    node = reader.get_node()
    kind = node.get_type_name()
    if kind == "Convert":
        return bool(node.get_output_element_type(0).is_real())
    return bool(kind == "ShapeOf" or (kind == "ConvertLike" and reader.get_index() == 1))
