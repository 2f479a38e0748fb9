# SPDX-License-Identifier: Apache-2.0
"""Optimizers that write a product with a reciprocal as a quotient, and a Gather by a Range as a Slice (1.24 to 1.32).

``x * (1 / y)`` becomes ``x / y``: another number of integers, and the axes are lost that the 1 has more than x and y. A Gather of
``Range(start, limit, step)`` becomes ``Slice(start, limit, step)``, where a bound below 0 counts from the end: of the rows from the last to the
first none is left.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.site import INTEGER_BITS
from onnx_multi_backend.engines.ort.optimizers.passed import passed_on, source
from onnx_multi_backend.models.contents import Contents

#: Of values that are not negative these make none that is.
_KEEPING_SIGNS = frozenset(
    {
        *("Add", "Cast", "Concat", "Div", "Gather", "Identity", "Max", "Min", "Mul", "ReduceMax", "ReduceMin"),
        *("ReduceProd", "ReduceSum", "Reshape", "Slice", "Squeeze", "Unsqueeze"),
    }
)
_SIZES = frozenset({"Shape", "Size"})


def _met(contents: Contents, operator: str, read: Iterable[str]) -> list[NodeProto]:
    """The nodes of an operator whose results are among what is read; what local functions pass on is not followed."""
    if contents.model.functions:
        return contents.of(operator)
    passed = passed_on(contents)
    sources = {source(name, passed) for name in read}
    return [node for node in contents.of(operator) if node.output[0] in sources]


def of_quotients(contents: Contents) -> list[str]:
    """One makes a quotient of a product with a reciprocal, of integers too, and whatever the shape of its 1 is."""
    if not contents.has({"Div"}) or not contents.has({"Mul"}):
        return []
    reciprocals = _met(contents, "Div", (name for node in contents.of("Mul") for name in node.input))
    if not reciprocals:
        return []
    facts = Facts(contents.model, contents)

    def is_misread(name: str) -> bool:
        held = facts.constants.get(name)
        if held is None:
            return name in facts.computed_of_constants
        return bool(held.dims) or held.data_type in INTEGER_BITS

    return ["DivMulFusion"] if any(is_misread(node.input[0]) for node in reciprocals) else []


def of_ranges(contents: Contents) -> list[str]:
    """One makes a Slice of a Gather by a Range, whose bounds count from the end there where they are negative."""
    if not contents.has({"Range"}) or not contents.has({"Gather"}):
        return []
    read = (node.input[1] for node in contents.of("Gather") if len(node.input) > 1)
    ranges = [node for node in _met(contents, "Range", read) if len(node.input) == 3]
    if not ranges:
        return []
    facts = Facts(contents.model, contents)
    makers = {name: node for node in contents.nodes for name in node.output if name}

    def is_negative(held: TensorProto) -> bool:
        return bool((numpy_helper.to_array(held) < 0).any())

    def may_be_negative(name: str) -> bool:
        waiting, seen = [name], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            maker, held = makers.get(name), facts.constants.get(name)
            if held is not None:
                if held.data_type in INTEGER_BITS and is_negative(held):
                    return True
            elif maker is None or maker.op_type not in _SIZES | _KEEPING_SIGNS:
                return True
            elif maker.op_type in _KEEPING_SIGNS:
                places = 1 if maker.op_type in ("Gather", "Reshape", "Slice", "Squeeze", "Unsqueeze") else None
                waiting += [read for read in maker.input[:places] if read]
        return False

    return ["GatherToSliceFusion"] if any(may_be_negative(name) for node in ranges for name in node.input) else []
