# SPDX-License-Identifier: Apache-2.0
"""Whether an operator means the same in two opsets, and whether a node is written for one."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

import onnx
from onnx import NodeProto
from onnx.defs import OpSchema

from onnx_multi_backend.models.graph_walk import canonical

#: How later versions mark what is an item of a list.
_BULLETS = re.compile(r"^\s*\* ", re.MULTILINE)

#: New versions whose documentation was rewritten, read side by side with the old one: every form that the old version
#: allows means the same in the new one, and the old one refuses (by type or by attribute) the forms that are new. So a node
#: may be of either. (domain, operator, new version): (oldest version that this holds for, what the new version added).
REVIEWED: dict[tuple[str, str, int], tuple[int, str]] = {
    **{("", operator, 14): (7, "integers of 8 and 16 bits") for operator in ("Add", "Div", "Mul", "Sub")},
    ("", "BitShift", 28): (11, "signed types"),
    ("", "Identity", 14): (1, "sequences"),
    ("", "Identity", 16): (1, "sequences and optionals"),
    ("", "Loop", 13): (11, "sequences as states"),
    ("", "Mod", 28): (13, "fmod=0 for floating-point types"),
}

#: The same, of nodes that have no more inputs than the old version.
REVIEWED_BY_INPUTS: dict[tuple[str, str, int], tuple[int, int, str]] = {
    ("", "Pad", 18): (13, 3, "axes, as a fourth input")
}


def unchanged(op_type: str, domain: str, given: int, wanted: int, inputs: int | None = None) -> bool:
    """Whether every use of an operator in opset `given` that opset `wanted` allows means the same there.

    So it is when both resolve to one version of the operator, or to versions that differ in their allowed types alone
    (same attributes with the same defaults, same inputs and outputs, same documentation), or in a `REVIEWED` way. The
    types themselves are the engine's to judge. `inputs` is how many a node has: then it is asked about that node.

    Source: https://github.com/onnx/onnx/blob/main/docs/Versioning.md, "Operator versioning".
    """
    try:
        now = onnx.defs.get_schema(op_type, given, domain)
        then = onnx.defs.get_schema(op_type, wanted, domain)
    except onnx.defs.SchemaError:
        return False
    if now.since_version == then.since_version:
        return True
    older, newer = sorted((now.since_version, then.since_version))
    for version in range(newer, older, -1):
        reviewed = REVIEWED.get((domain, op_type, version))
        if reviewed is not None and older >= reviewed[0]:
            return version == newer or unchanged(op_type, domain, version, newer)
    by_inputs = REVIEWED_BY_INPUTS.get((domain, op_type, now.since_version))
    if by_inputs is not None and inputs is not None and inputs <= by_inputs[1]:
        return then.since_version >= by_inputs[0]
    return _meaning(op_type, domain, now.since_version) == _meaning(op_type, domain, then.since_version)


def is_written_for(nodes: Iterable[NodeProto], versions: Mapping[str, int]) -> bool:
    """Whether nodes have the inputs and attributes of their operators in these opsets: an engine may crash on others.

    What onnx does not know may have any.
    """
    for node in nodes:
        domain = canonical(node.domain)
        if domain not in versions or not onnx.defs.has(node.op_type, versions[domain], domain):
            continue
        schema = onnx.defs.get_schema(node.op_type, versions[domain], domain)
        if not schema.min_input <= len(node.input) <= schema.max_input:
            return False
        if not schema.attributes.keys() >= {attribute.name for attribute in node.attribute}:
            return False
    return True


@functools.cache
def _meaning(op_type: str, domain: str, version: int) -> tuple[Any, ...]:
    """What a schema says apart from its types."""
    schema: OpSchema = onnx.defs.get_schema(op_type, version, domain)
    attributes = tuple(
        (name, a.type, a.required, a.default_value.SerializeToString(deterministic=True))
        for name, a in sorted(schema.attributes.items())
    )
    formal = tuple(
        tuple((p.name, p.option, p.is_homogeneous, p.min_arity, p.type_str) for p in parameters)
        for parameters in (schema.inputs, schema.outputs)
    )
    return attributes, formal, " ".join(_BULLETS.sub("", schema.doc or "").split())
