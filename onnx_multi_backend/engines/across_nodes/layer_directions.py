# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of two recurrent layers that go through the same values, one forward and one backward.

It makes one layer of both directions of them, with the activations of the first alone. No such layer is made where the second reads the larger of a
value and itself, which is that value.
"""

from __future__ import annotations

from onnx import NodeProto, helper

from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.operators.recurrent import LAYERS, activation_names
from onnx_multi_backend.adapt.walked import NodeView, Walked, walked_of
from onnx_multi_backend.engines.across_nodes.apart import flat_for, inputs_apart, passed_from
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents

_DEFAULTS = {"LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"], "RNN": ["tanh"]}
_CHANGE = "kept apart from the layer of the other direction"
_REASON = "OpenVINO would make one layer of both, with the activations of one"


def layers_apart(contents: Contents) -> Rewritten | None:
    """A copy of the model in which such layers are kept apart; None where there are none."""
    if not any(map(_goes_back, contents.of(*LAYERS))) or (flat := flat_for(contents)) is None:
        return None
    walked = walked_of(contents)
    found = [dict.fromkeys(_other(nodes, walked), 0) for nodes in walked.views]
    return inputs_apart(flat, found, f"{CAST}direction", "layers_apart", _CHANGE, _REASON)


def _goes_back(node: NodeProto) -> bool:
    return _direction(node) == b"reverse"


def _direction(node: NodeProto) -> bytes:
    return next((a.s for a in node.attribute if a.name == "direction"), b"forward")


def _other(nodes: list[NodeView], walked: Walked) -> list[int]:
    """The places of the layers that go backward beside one that goes forward, and do something else on the way."""
    layers = [(place, node) for place, node in enumerate(nodes) if node.operator in LAYERS and node.input]
    forward = [node for _, node in layers if _direction(node.proto) == b"forward"]
    return [
        place
        for place, node in layers
        if _goes_back(node.proto)
        if any(
            node.operator == each.operator
            and _source(node, walked) == _source(each, walked)
            and _done(node.proto) != _done(each.proto)
            for each in forward
        )
    ]


def _source(layer: NodeView, walked: Walked) -> str:
    return passed_from(layer.input[0], walked.makers, ("Identity",))


def _done(node: NodeProto) -> dict[str, object]:
    """What a layer's attributes say of a step."""
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name != "direction"}
    named = activation_names(given.pop("activations", []))
    return {**given, "activations": named or _DEFAULTS[node.op_type]}
