# SPDX-License-Identifier: Apache-2.0
"""Rules: Conv and Gemm with an activation, as ONNX Runtime's optimizer fuses the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import ModelProto

from onnx_multi_backend.adapt.operators.contrib import DOMAIN
from onnx_multi_backend.adapt.site import Body, Site

#: The attributes of each activation, by the names that ONNX has for them.
_ACTIVATIONS: Mapping[str, Mapping[str, str]] = {
    "HardSigmoid": {"activation_alpha": "alpha", "activation_beta": "beta"},
    "LeakyRelu": {"activation_alpha": "alpha"},
    **{name: {} for name in ("Relu", "Sigmoid", "Softplus", "Tanh")},
}
#: The same of a Conv, by the places of its `activation_params`.
_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "HardSigmoid": ("alpha", "beta"),
    "LeakyRelu": ("alpha",),
    **dict.fromkeys(("Relu", "Sigmoid", "Tanh"), ()),
}


def fused_conv(site: Site) -> Iterator[ModelProto]:
    """Write a Conv, the sum with what a fourth input holds, and the activation. Source: FusedConv in ONNX Runtime's ``fused_conv.cc``."""
    activation, given = site.attribute("activation", ""), site.attribute("activation_params", [])
    if site.domain != DOMAIN or site.op_type != "FusedConv" or activation not in ("", "Clip", *_PARAMETERS):
        return
    if not site.has_input(0) or not site.has_input(1):  # OpenVINO ends the process over such a Conv
        return
    body = Body(site)
    made = body("Conv", *site.node.input[:3], **site.attributes("activation", "activation_params"))
    if site.has_input(3):
        made = body("Add", made, site.input(3))
    if activation == "Clip":
        kind = site.elem_type(site.input(0))
        if len(given) != len(("min", "max")) or not kind:
            return
        made = body("Clip", made, *(body.constant(bound, kind) for bound in given))
    elif activation:
        made = body(activation, made, **dict(zip(_PARAMETERS[activation], given, strict=False)))
    yield body.finish(made)


def fused_gemm(site: Site) -> Iterator[ModelProto]:
    """Write the two. Source: FusedGemm in ONNX Runtime's ContribOperators.md."""
    activation = site.attribute("activation", "")
    if site.domain != DOMAIN or site.op_type != "FusedGemm" or activation not in _ACTIVATIONS:
        return
    if not site.has_input(0) or not site.has_input(1):
        return
    own = ("activation", "activation_alpha", "activation_beta", "activation_gamma")
    body = Body(site)
    given = {
        name: site.attribute(theirs)
        for theirs, name in _ACTIVATIONS[activation].items()
        if site.attribute(theirs) is not None
    }
    yield body.finish(body(activation, body("Gemm", *site.node.input, **site.attributes(*own)), **given))
