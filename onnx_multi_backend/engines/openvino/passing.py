# SPDX-License-Identifier: Apache-2.0
"""Outputs that are an input passed on: where its shape is known only at run time, OpenVINO drops the Convert between them.

With 2026.4 the output is then read from memory that is no longer the input's, from the first smaller input on, or the heap is
damaged. An Identity is kept, and its result copied. Several Converts are dropped where all types are computed in one: one to
integers that numbers in floating point come back from is kept, and cuts them.
"""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.openvino import runtime

#: What a Cast and a CastLike are read as.
_CONVERTS = frozenset({"Convert", "ConvertLike"})
#: What is dropped too where a Convert follows.
_PASSES = _CONVERTS | {"Identity"}
#: Are all computed in int32.
_WIDE = frozenset({"i32", "i64", "u32", "u64"})


def keep_apart(read: Any) -> tuple[Adaptation, ...]:
    """Put an Identity between such an input and its output, in place."""
    changes = []
    for result in read.get_results():
        last = result.input_value(0)
        source = last
        while source.get_node().get_type_name() in _PASSES and _are_one(source, last):
            source = source.get_node().input_value(0)
        passed = last.get_node().get_type_name() in _CONVERTS and source.get_node().get_type_name() == "Parameter"
        if not passed or source.get_element_type() != last.get_element_type() or source.get_partial_shape().is_static:
            continue
        copied = runtime.load().opset16.identity(source)
        copied.set_friendly_name(last.get_node().get_friendly_name())
        copied.output(0).set_names(last.get_names())
        result.input(0).replace_source_output(copied.output(0))
        where = f"Cast {last.get_node().get_friendly_name()!r}"
        reason = (
            "OpenVINO drops a Cast that changes no type, and reads the output from memory that is no longer the input's"
        )
        changes.append(Adaptation("mend_frontend", where, "written as Identity", reason))
    return tuple(changes)


def _are_one(one: Any, other: Any) -> bool:
    """Whether two values have types that OpenVINO computes in the same one."""
    kinds = [value.get_element_type() for value in (one, other)]
    return (
        kinds[0] == kinds[1] or all(kind.is_real() for kind in kinds) or _WIDE.issuperset(k.to_string() for k in kinds)
    )
