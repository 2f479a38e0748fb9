# SPDX-License-Identifier: Apache-2.0
"""Names for ONNX Runtime's writer of Q/DQ nodes, which calls a scale of tensor ``x`` ``x_scale``, though another tensor may be called so."""

from __future__ import annotations

from onnx import ModelProto

from onnx_multi_backend.adapt.renaming import renamed_graph

#: Behind every tensor's name while the writer is at work. Its own names have something behind that, so none is a tensor's.
_TAG = "/omb_tensor"


def tagged(name: str) -> str:
    """What a tensor is called while the writer is at work."""
    return f"{name}{_TAG}"


def tag(model: ModelProto) -> set[str]:
    """Rename every tensor of a model, in place.

    Returns
    -------
    set of str
        The names as they were.
    """
    names: set[str] = set()

    def rename(name: str) -> str:
        names.add(name)
        return tagged(name)

    renamed_graph(model.graph, rename)
    return names


def untag(model: ModelProto, names: set[str]) -> None:
    """Give the tensors their names back, in place, and the writer's those that it would have given, where these are free."""
    taken, final = set(names), {tagged(name): name for name in names}

    def rename(name: str) -> str:
        if name not in final:
            plain = untagged(name)
            final[name] = name if plain in taken else plain
            taken.add(final[name])
        return final[name]

    renamed_graph(model.graph, rename)
    for node in model.graph.node:
        node.name = untagged(node.name)


def untagged(text: str) -> str:
    """A name or a message as it is without the tags."""
    return text.replace(_TAG, "")
