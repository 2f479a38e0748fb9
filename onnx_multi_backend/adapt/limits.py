# SPDX-License-Identifier: Apache-2.0
"""What an engine declares about itself, so that passes know what to bring down."""

from __future__ import annotations

from typing import Protocol


class Limits(Protocol):
    """The limits of one engine. Each answer may cost a probe of the engine, so a pass asks only when it has to."""

    def max_ir_version(self) -> int | None:
        """Highest IR version that the engine accepts; None: it accepts any."""

    def max_opset(self, domain: str) -> int | None:
        """Highest opset of a domain that the engine accepts; None: it accepts any."""

    def takes_directly(self, elem_type: int) -> bool:
        """Whether arrays of this element type pass the engine's boundary as they are."""

    def carries(self, elem_type: int, *, cast_to: bool) -> bool:
        """Whether the engine needs a narrow type carried in a wider one; `cast_to`: values become of that type."""

    def can_cast(self, elem_type: int, opset: int, *, out: bool) -> bool:
        """Whether the engine casts this element type to its wider one (`out`) or from it, at this opset."""
