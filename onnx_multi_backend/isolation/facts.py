# SPDX-License-Identifier: Apache-2.0
"""What one process reports to another about a model that it has prepared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.models.origin import Origin
from onnx_multi_backend.running.prepared import PreparedModel
from onnx_multi_backend.sessions.signature import Signature, from_json, to_json


class Facts(NamedTuple):
    """A prepared model from outside.

    Attributes
    ----------
    signature : Signature
        Without edges: types are converted where the engine is.
    adaptations : tuple of Adaptation
    device : str or None
    provider : str
    providers : tuple of (str, mapping)
        What `set_providers` chose.
    origin : Origin
        The model's files, by their stamps; see `SessionMaker.origin`.
    """

    signature: Signature
    adaptations: tuple[Adaptation, ...]
    device: str | None
    provider: str
    providers: tuple[tuple[str, Mapping[str, str]], ...]
    origin: Origin


def received(facts: Facts) -> Facts:
    """The same, once it was unpickled: with numpy's own dtype objects, which inputs are compared with by identity."""
    signature = from_json(to_json(facts.signature), facts.origin.path)
    return facts._replace(signature=signature)


def facts_of(prepared: PreparedModel) -> Facts:
    """The facts of a model that was prepared in this process."""
    signature = replace(prepared._signature, input_boundary_types={}, output_boundary_types={})
    return Facts(
        signature,
        prepared.adaptations,
        prepared.device,
        prepared.provider,
        prepared._recipe.providers,
        prepared._sessions.make.origin,
    )
