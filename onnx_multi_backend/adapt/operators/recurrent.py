# SPDX-License-Identifier: Apache-2.0
"""The recurrent layers."""

from __future__ import annotations

from collections.abc import Iterable

LAYERS = frozenset({"GRU", "LSTM", "RNN"})


def activation_names(given: Iterable[bytes]) -> list[str]:
    """The activations that a layer names, in small letters: the case does not count."""
    return [name.decode(errors="replace").lower() for name in given]


#: Activations that `activation_alpha` and `activation_beta` are dealt out to.
_WITH_PARAMETERS = frozenset("affine elu hardsigmoid leakyrelu scaledtanh thresholdedrelu".split())


def takes_parameters(activations: Iterable[str]) -> bool:
    """Whether one of these activations, in small letters, has parameters; those that a layer has by default have none."""
    return not _WITH_PARAMETERS.isdisjoint(activations)
