# SPDX-License-Identifier: Apache-2.0
"""The codes that stand for the strings of a model."""

from __future__ import annotations

from typing import NamedTuple

#: Fewer codes than these: OpenVINO moves some int32 in float32, which holds every integer up to here.
MOST_CODES = 2**24


class StringCodes(NamedTuple):
    """How a model that was written with codes for its strings is to be run.

    Attributes
    ----------
    words : sequence of str
        The strings of the model itself; the code of each is its place. The empty string has code 0, so that an engine that pads with
        zeros pads with empty strings.
    inputs : sequence of str
        The graph inputs that take strings.
    outputs : sequence of int
        The places of the graph outputs that are strings.
    """

    words: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[int, ...]
