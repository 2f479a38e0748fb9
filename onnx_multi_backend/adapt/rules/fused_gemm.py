# SPDX-License-Identifier: Apache-2.0
"""Rule: Gemm with an activation, as ONNX Runtime's optimizer fuses the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import ModelProto

from onnx_multi_backend.adapt.rules.contrib import DOMAIN
from onnx_multi_backend.adapt.site import Body, Site

#: The attributes of each activation, by the names that ONNX has for them.
_ACTIVATIONS: Mapping[str, Mapping[str, str]] = {
    "HardSigmoid": {"activation_alpha": "alpha", "activation_beta": "beta"},
    "LeakyRelu": {"activation_alpha": "alpha"},
    **{name: {} for name in ("Relu", "Sigmoid", "Softplus", "Tanh")},
}


def fused_gemm(site: Site) -> Iterator[ModelProto]:
    """Write the two. Source: FusedGemm in ONNX Runtime's ContribOperators.md."""
    activation = site.attribute("activation", "")
    if site.domain != DOMAIN or site.op_type != "FusedGemm" or activation not in _ACTIVATIONS:
        return
    own = ("activation", "activation_alpha", "activation_beta", "activation_gamma")
    body = Body(site)
    given = {
        name: site.attribute(theirs)
        for theirs, name in _ACTIVATIONS[activation].items()
        if site.attribute(theirs) is not None
    }
    yield body.finish(body(activation, body("Gemm", *site.node.input, **site.attributes(*own)), **given))
