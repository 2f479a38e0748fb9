# SPDX-License-Identifier: Apache-2.0
"""What an engine declares about itself, so that passes know what to bring down."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class Limits:
    """The limits of one engine; here of one that has none.

    Each answer may cost a probe of the engine, so a pass asks only when it has to.

    Attributes
    ----------
    sure_ir_version : int
        The engine reads at least this one: below it nothing is asked.
    sure_opsets : mapping of str to int
        The same of opsets, by domain.
    sorts_nodes : bool
        The engine takes the nodes of a main graph in any order.
    codes_strings : bool
        The engine is given codes for strings, where a model only moves and compares them.
    """

    sure_ir_version: int = 0
    sure_opsets: Mapping[str, int] = MappingProxyType({})
    sorts_nodes: bool = False
    codes_strings: bool = False

    def max_ir_version(self) -> int | None:
        """Highest IR version that the engine accepts; None: it accepts any."""
        return None

    def max_opset(self, domain: str) -> int | None:
        """Highest opset of a domain that the engine accepts; None: it accepts any."""
        return None

    def boundary_type(self, elem_type: int) -> int:
        """The element type in which arrays of an element type pass the engine's boundary; itself where they pass as they are."""
        return elem_type

    def takes_any_flag(self) -> bool:
        """Whether the engine reads a flag that is neither 0 nor 1 as ONNX Runtime does; see the pass `flags`."""
        return False

    def needs_carrier(self, elem_type: int, *, cast_to: bool, saturate: bool) -> bool:
        """Whether the engine needs a narrow type carried in a wider one.

        Parameters
        ----------
        elem_type : int
        cast_to : bool
            Values become of that type.
        saturate : bool
            All that do, with ``saturate=1``.
        """
        return False

    def has_optionals(self) -> bool:
        """Whether the engine wraps values in optionals by itself."""
        return True

    def moves(self, elem_type: int) -> bool:
        """Whether the engine moves elements of a narrow type that it is given by a run: slices them, joins them."""
        return True

    def gives_back(self, elem_type: int) -> bool:
        """Whether the engine can pass values of a narrow type on to a result as they are."""
        return True

    def can_cast(self, elem_type: int, opset: int, *, out: bool) -> bool:
        """Whether the engine casts this element type to its boundary type (`out`) or from it, at this opset."""
        return True
