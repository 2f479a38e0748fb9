# SPDX-License-Identifier: Apache-2.0
"""The axes that a node names, by an attribute or a list."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals.constant_reductions import axes_given
from onnx_multi_backend.models.tensors import is_whole


def axes_stored(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> tuple[int, ...] | None:
    """The axes that a node names, by an attribute or a stored list, none for all; None where they are not known."""
    held = {name: tensor for name in node.input[1:2] if (tensor := constants.get(name)) is not None}
    return axes_given(node, {n: tensor for n, tensor in held.items() if tensor.data_type and is_whole(tensor)})


def axes_named(node: NodeProto, constants: Mapping[str, TensorProto | None]) -> int | None:
    """How many axes a node names."""
    if len(node.input) > 1:
        return _length(node.input[1], constants)
    return next((len(a.ints) for a in node.attribute if a.name == "axes"), None)


def _length(name: str, constants: Mapping[str, TensorProto | None]) -> int | None:
    """How many elements a stored list has."""
    tensor = constants.get(name)
    return tensor.dims[0] if tensor is not None and tensor.data_type and len(tensor.dims) == 1 else None
