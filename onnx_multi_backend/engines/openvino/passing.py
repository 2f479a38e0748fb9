# SPDX-License-Identifier: Apache-2.0
"""Outputs that are an input passed on: where its shape is known only at run time, OpenVINO drops a Convert between them.

Around one it drops more that changes nothing: a product with 1, an Expand to the size that there is, a Transpose and the one that undoes it.
With 2026.4 the output is then read from memory that is no longer the input's, from the first smaller input on, or the heap is
damaged. The larger of a value and itself, which is that value, is kept. Of Casts alone an Identity does, which is kept between an input and an
output and costs less.
"""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.openvino import runtime

#: What a Cast and a CastLike are read as.
_CONVERTS = frozenset({"Convert", "ConvertLike"})
_CASTS = _CONVERTS | {"Identity"}
#: Are all computed in int32.
_WIDE = frozenset({"i32", "i64", "u32", "u64"})
#: What may be dropped beside them: of these, the first input is passed on, of the others any.
_OF_FIRST = _CASTS | {
    *("Broadcast", "Negative", "Pad", "Reshape", "Slice", "Split", "Squeeze", "StridedSlice", "Tile", "Transpose"),
    *("Unsqueeze", "VariadicSplit"),
}
_OF_ANY = frozenset({"Add", "Concat", "Divide", "Maximum", "Minimum", "Mod", "Multiply", "Power", "Select", "Subtract"})
#: So many nodes are looked through.
_MOST = 64
_REASON = "OpenVINO drops a Cast that changes no type, and reads the output from memory that is no longer the input's"


def keep_apart(read: Any) -> tuple[Adaptation, ...]:
    """Put an operator that is kept between such an input and its output, in place."""
    changes = []
    for result in read.get_results():
        last = result.input_value(0)
        if not _may_be_passed_on(last):
            continue
        ops = runtime.load().opset16
        source = last
        while source.get_node().get_type_name() in _CASTS and _are_one(source, last):
            source = source.get_node().input_value(0)
        if source.get_node().get_type_name() == "Parameter" and source.get_element_type() == last.get_element_type():
            kept, change = ops.identity(source), "written as Identity"
        elif last.get_element_type().to_string() == "boolean":
            kept, change = ops.logical_or(last, last), "followed by an Or of it and itself"
        else:
            kept, change = ops.maximum(last, last), "followed by the larger of it and itself"
        kept.set_friendly_name(last.get_node().get_friendly_name())
        kept.output(0).set_names(last.get_names())
        result.input(0).replace_source_output(kept.output(0))
        where = f"{last.get_node().get_type_name()} {last.get_node().get_friendly_name()!r}"
        changes.append(Adaptation("mend_frontend", where, change, _REASON))
    return tuple(changes)


def _are_one(one: Any, other: Any) -> bool:
    """Whether two values have types that OpenVINO computes in the same one; integers would be cut."""
    kinds = [value.get_element_type() for value in (one, other)]
    return (
        kinds[0] == kinds[1] or all(kind.is_real() for kind in kinds) or _WIDE.issuperset(k.to_string() for k in kinds)
    )


def _may_be_passed_on(last: Any) -> bool:
    """Whether between a value and an input of open sizes and its type there are a Convert and what may be dropped with it."""
    todo: list[tuple[Any, bool]] = [(last, False)]
    seen: set[tuple[str, bool]] = set()
    while todo and len(seen) < _MOST:
        value, converted = todo.pop()
        node = value.get_node()
        if (mark := (node.get_name(), converted)) in seen:
            continue
        seen.add(mark)
        kind = node.get_type_name()
        if kind == "Parameter":
            open_sizes = value.get_partial_shape().is_dynamic
            if converted and open_sizes and value.get_element_type() == last.get_element_type():
                return True
        elif kind in _OF_FIRST | _OF_ANY:
            if kind in _CONVERTS:
                if not _are_one(value, node.input_value(0)):
                    continue  # it is kept, and cuts numbers
                converted = True
            read = 1 if kind in _OF_FIRST else node.get_input_size()
            todo += [(node.input_value(i), converted) for i in range(read)]
    return False
