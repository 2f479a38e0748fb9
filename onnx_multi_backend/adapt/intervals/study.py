# SPDX-License-Identifier: Apache-2.0
"""What is known of a model that an engine computes in narrower types; `widths` finds it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from onnx import NodeProto

from onnx_multi_backend.adapt.operation import Values

if TYPE_CHECKING:
    from onnx_multi_backend.adapt.intervals.bounds import Bound


class Concern(NamedTuple):
    """A node, and what the engine does to its numbers."""

    node: NodeProto
    words: str


@dataclass
class Study:
    """What an engine that computes wide types in narrower ones makes of a model.

    Attributes
    ----------
    bounds : dict of str to Bound
        By input.
    readers : dict of str to set of str
        The operators that compute with an input.
    constants, overflows, chosen, doubles : list of Concern
        Nodes that read constants beyond int32; that leave int32 whatever the inputs are; that may leave it by what a run chooses from
        constants; that compute with float64.
    uncertain : bool
        Whether the engine may compute a node on integers wrongly.
    values : mapping of str to Value, optional
        What `ranges` tells of the graph, for others to use, where nothing else is known of its inputs.
    """

    bounds: dict[str, Bound] = field(default_factory=dict)
    readers: dict[str, set[str]] = field(default_factory=dict)
    constants: list[Concern] = field(default_factory=list)
    overflows: list[Concern] = field(default_factory=list)
    chosen: list[Concern] = field(default_factory=list)
    doubles: list[Concern] = field(default_factory=list)
    uncertain: bool = False
    values: Values | None = None

    @property
    def is_clear(self) -> bool:
        """Whether nothing has to be told, refused or checked."""
        return not (self.bounds or self.constants or self.overflows or self.chosen or self.doubles)
