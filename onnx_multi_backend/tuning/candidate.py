# SPDX-License-Identifier: Apache-2.0
"""A configuration that may be tried."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx_multi_backend.presets.setup import Setup

#: The model that the user gave, among the variants of it.
AS_GIVEN = "as given"


@dataclass(frozen=True)
class Candidate:
    """A setup for one variant of the model.

    Attributes
    ----------
    setup : Setup
    words : tuple of str
        How it differs from the preset's defaults, in words.
    model : str
        ``as given``, or another variant: ``int8 (ort)``.
    float32 : bool
        Whether everything is computed at least as exactly as the model says.
    any_shape : bool
        Whether it takes all inputs that the model takes.
    choices : frozenset of (str, str)
        The knobs that are not at their defaults, and their choices.
    """

    setup: Setup
    words: tuple[str, ...] = ()
    model: str = AS_GIVEN
    float32: bool = True
    any_shape: bool = True
    choices: frozenset[tuple[str, str]] = field(default=frozenset())

    @property
    def name(self) -> str:
        """``Openvino, 1 thread, bf16``."""
        variant = () if self.model == AS_GIVEN else (self.model,)
        return ", ".join((self.setup.preset, *variant, *self.words))

    @property
    def key(self) -> str:
        """Tells it from all others, also in another process."""
        return f"{self.setup.digest} {self.model}"
