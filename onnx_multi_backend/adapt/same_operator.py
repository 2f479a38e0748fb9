# SPDX-License-Identifier: Apache-2.0
"""Whether an operator means the same in two opsets."""

from __future__ import annotations

import functools
from typing import Any

import onnx
from onnx.defs import OpSchema

#: New versions whose documentation was rewritten, read side by side with the old one: every form that the old version
#: allows means the same in the new one, and the old one refuses (by type or by attribute) the forms that are new.
#: (domain, operator, new version): (oldest version it may become, what the new version added).
REVIEWED: dict[tuple[str, str, int], tuple[int, str]] = {
    ("", "BitShift", 28): (11, "signed types"),
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
    reviewed = REVIEWED.get((domain, op_type, now.since_version))
    if reviewed is not None:
        return then.since_version >= reviewed[0]
    by_inputs = REVIEWED_BY_INPUTS.get((domain, op_type, now.since_version))
    if by_inputs is not None and inputs is not None and inputs <= by_inputs[1]:
        return then.since_version >= by_inputs[0]
    return _meaning(op_type, domain, now.since_version) == _meaning(op_type, domain, then.since_version)


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
    return attributes, formal, " ".join((schema.doc or "").split())
