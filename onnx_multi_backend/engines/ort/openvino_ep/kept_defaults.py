# SPDX-License-Identifier: Apache-2.0
"""A session whose execution provider takes the default of an input for a constant: another value is refused, not ignored.

Seen with OpenVINO's built-in provider (1.24.1).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from onnx import ModelProto

from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Session
from onnx_multi_backend.engines.wrappers.checked import CheckedSession
from onnx_multi_backend.errors import InputError
from onnx_multi_backend.models.graph_walk import all_nodes, defaults_of


def with_defaults_kept(
    session: Session, model: ModelProto, placement: Sequence[NodePlacement], provider: str, label: str
) -> Session:
    """The session; where nodes of the provider may read a default, one that refuses another value."""
    defaults = defaults_of(model.graph)
    if not defaults:
        return session
    elsewhere = {n.op_type for n in placement} - {n.op_type for n in placement if n.provider == provider}
    read = {name for node in all_nodes(model) if node.op_type not in elsewhere for name in reads(node)}
    kept = sorted(defaults & read)
    if not kept:
        return session
    return CheckedSession(session, [(name, functools.partial(_refuse, label, provider, name)) for name in kept])


def _refuse(label: str, provider: str, name: str, value: Any) -> None:
    if value is not None:
        raise InputError(
            f"{label}, input {name!r}: {provider} treats its default as a constant, and would ignore this value. Leave it out, take "
            f"the initializer {name!r} out of the model, which makes it an input like others, or choose OrtCpu."
        )
