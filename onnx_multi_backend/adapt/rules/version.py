# SPDX-License-Identifier: Apache-2.0
"""Rule: an operator that changed is written as ONNX's version converter writes it."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import numpy as np
import onnx
import onnx.version_converter
from onnx import ModelProto, TensorProto, helper

from onnx_multi_backend.adapt.rules.older_resize import RESIZE, older_resize
from onnx_multi_backend.adapt.site import INTEGER_BITS, Body, Site

#: The first opset whose elementwise operators broadcast as today's.
_MODERN = 7


#: Operators, with two opsets, between which the converter says that it has no way. Asking takes 10 ms.
_NO_WAY: set[tuple[str, int, int]] = set()

#: Since this opset the limits of Clip are inputs.
_CLIP_INPUTS = 11

#: What limits Clip before that where none is given, by attribute.
_FLOAT_LIMITS = {"min": float(np.finfo(np.float32).min), "max": float(np.finfo(np.float32).max)}

_NO_ADAPTER = (RuntimeError, ValueError, onnx.version_converter.ConvertError, onnx.shape_inference.InferenceError)


def convert_version(site: Site) -> Iterator[ModelProto]:
    """Lift an operator of an older opset, or bring down one of a newer, with ONNX's own converter."""
    if site.is_("Clip") and site.opset < _CLIP_INPUTS and site.elem_type(site.input(0)):
        yield _clip(site)
        return
    if (
        site.is_("PRelu") and site.opset < _MODERN
    ):  # the converter leaves a slope for each channel as it is: see `prelu`
        return
    if site.is_("Resize", "Upsample") and _MODERN <= site.opset < RESIZE <= site.target:
        yield from older_resize(site)
        return
    targets = [_MODERN, site.target] if site.opset < _MODERN else [site.target]
    if site.is_("Upsample"):
        targets = targets[:1]  # from there on it is written as above
    for target in targets:
        way = site.op_type, site.opset, target
        if site.domain or site.opset == target or way in _NO_WAY:
            continue
        model = ModelProto()
        model.CopyFrom(site.model)
        for tensor in model.graph.initializer:  # the converter knows no others
            model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
        encoded, why_not = _converted(model.SerializeToString(deterministic=True), target)
        if encoded is None:
            if "No Adapter" in why_not:
                _NO_WAY.add(way)
            continue
        converted = ModelProto.FromString(encoded)
        del converted.graph.input[len(site.model.graph.input) :]
        _as_nodes(site, converted)
        if converted.graph.node and not _loses_integers(site, converted):
            yield converted


@functools.lru_cache(maxsize=256)
def _converted(model: bytes, target: int) -> tuple[bytes | None, str]:
    """An encoded model of one node as the converter writes it, or None and why not. It takes 7 ms, and nodes of one form are many."""
    try:
        converted = onnx.version_converter.convert_version(ModelProto.FromString(model), target)
    except _NO_ADAPTER as error:
        return None, str(error)
    return converted.SerializeToString(), ""


def _as_nodes(site: Site, converted: ModelProto) -> None:
    """Make Constants of the initializers that the converter added: nodes alone take a node's place."""
    given = {tensor.name for tensor in site.model.graph.initializer}
    for place, tensor in reversed(list(enumerate(converted.graph.initializer))):
        if tensor.name not in given:
            converted.graph.node.insert(0, helper.make_node("Constant", [], [tensor.name], value=tensor))
            del converted.graph.initializer[place]


def _clip(site: Site) -> ModelProto:
    """Limits of the tensor's own type: ONNX's converter makes them float32, and puts in those that were left out.

    Those were float32's then, whatever the tensor's type; since `_CLIP_INPUTS` they are those of its type.
    """
    body, kind = Body(site), site.elem_type(site.input(0))
    of_type = kind == TensorProto.FLOAT
    limits = [site.attribute(name, None if of_type else limit) for name, limit in _FLOAT_LIMITS.items()]
    with np.errstate(over="ignore"):  # float32's limits are infinite in float16
        given = ["" if limit is None else body.constant(limit, kind) for limit in limits]
    while given and not given[-1]:
        given.pop()
    return body.finish(body("Clip", site.input(0), *given))


def _loses_integers(site: Site, converted: ModelProto) -> bool:
    """Whether the converter took floating-point numbers for integers that an older operator lacks."""
    if site.is_("Cast"):
        return False
    whole = any(INTEGER_BITS.get(site.elem_type(name), 0) > 16 for name in site.node.input)
    return whole and any(
        node.op_type == "Cast" and any(a.name == "to" and a.i not in INTEGER_BITS for a in node.attribute)
        for node in converted.graph.node
    )
