# SPDX-License-Identifier: Apache-2.0
"""Limits of a Clip that are left to their defaults, the numbers that float32 ends with: OpenVINO's frontend (2025.4, 2026.4) reads none, and an infinity stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onnx import FunctionProto, ModelProto, NodeProto, helper

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, nodes_in, operator_name

_DEFAULTS = {"min": -3.4028234663852886e38, "max": 3.4028234663852886e38}
#: The opsets of which the limits are attributes with defaults.
_OPSETS = range(6, 11)
_REASON = "OpenVINO takes a limit that is left to its default for none"


def may_leave_limits(contents: Contents) -> bool:
    """Whether a Clip may lack a limit, as far as the nodes alone tell."""
    model = contents.model
    return any(map(_lacking, contents.of("Clip"))) and (
        _has_defaults(model) or any(map(_has_defaults, model.functions))
    )


def with_limits(model: ModelProto) -> tuple[ModelProto, tuple[Adaptation, ...]]:
    """A copy of the model that names them, and the record of that."""
    copy = ModelProto()
    copy.CopyFrom(model)
    holders = [copy.graph.node] if _has_defaults(copy) else []
    holders += [function.node for function in copy.functions if _has_defaults(function)]
    return copy, tuple(change for nodes in holders for change in _named(nodes))


def _named(nodes: Iterable[NodeProto]) -> Iterator[Adaptation]:
    for node in nodes_in(nodes):
        lacking = _lacking(node)
        node.attribute.extend(helper.make_attribute(name, _DEFAULTS[name]) for name in lacking)
        if lacking:
            where = f"{operator_name(node)} (output {next(iter(node.output), '')!r})"
            yield Adaptation("default_limits", where, f"{' and '.join(lacking)} written out", _REASON)


def _has_defaults(holder: ModelProto | FunctionProto) -> bool:
    return any(i.version in _OPSETS for i in holder.opset_import if not canonical(i.domain))


def _lacking(node: NodeProto) -> list[str]:
    """The limits that are no attributes of a Clip of one input."""
    if node.op_type != "Clip" or canonical(node.domain) or len(node.input) != 1:
        return []
    return sorted(_DEFAULTS.keys() - {attribute.name for attribute in node.attribute})
