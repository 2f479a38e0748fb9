# SPDX-License-Identifier: Apache-2.0
"""Rule: bidirectional recurrent layers whose directions have different activations."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.operators.recurrent import LAYERS, activation_names, takes_parameters
from onnx_multi_backend.adapt.site import Body, Site

#: The inputs that hold a part for each direction: weights, biases and states. The lengths of sequences and the peepholes are other rules' concern.
_OF_DIRECTIONS = (1, 2, 3, 5, 6)
_PARAMETERS = ("activation_alpha", "activation_beta")
#: The axis of the directions, for each output.
_AXES = (1, 0, 0)


def has_other_activations(site: Site) -> bool:
    """Whether the reverse direction of a layer has other activations than the forward one, or may have other parameters of them."""
    if not site.is_(*LAYERS) or site.attribute("direction") != "bidirectional":
        return False
    named = activation_names(site.attribute("activations", []))
    half = len(named) // 2
    parameters = [site.attribute(name, []) for name in _PARAMETERS] if takes_parameters(named) else []
    return named[:half] != named[half:] or any(p[: len(p) // 2] != p[len(p) // 2 :] for p in parameters)


def recurrent_directions(site: Site) -> Iterator[ModelProto]:
    """A layer for each direction. Source: the documentation of LSTM, GRU and RNN."""
    if not has_other_activations(site) or site.has_input(4) or site.has_input(7) or site.attribute("layout", 0):
        return
    body, activations = Body(site), site.attribute("activations")
    if takes_parameters(activation_names(activations)) and any(map(site.attribute, _PARAMETERS)):  # dealt out to those
        return
    half, count = len(activations) // 2, len(site.node.output)
    parts = {
        place: body("Split", name, body.ints(1, 1), axis=0, outputs=2)
        for place, name in enumerate(site.node.input)
        if name and place in _OF_DIRECTIONS
    }
    made = []
    for i, direction in enumerate(("forward", "reverse")):
        inputs = [parts[place][i] if place in parts else name for place, name in enumerate(site.node.input)]
        own = {"direction": direction, "activations": activations[i * half : (i + 1) * half]}
        made.append(body(site.op_type, *inputs, outputs=count, **own, **site.attributes(*own, *_PARAMETERS)))
    yield body.finish(
        *(body("Concat", *both, axis=axis) for both, axis in zip(zip(*made, strict=True), _AXES[:count], strict=True))
    )
