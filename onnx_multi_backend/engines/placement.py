# SPDX-License-Identifier: Apache-2.0
"""Where the nodes of a model really run, and whether that is what was asked for."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from onnx_multi_backend import option_words
from onnx_multi_backend.errors import UnsupportedModelError

Fallback = Literal["partial", "none", "full"]
FALLBACKS: tuple[str, ...] = ("partial", "none", "full")


class NodePlacement(NamedTuple):
    """One node of the prepared model and the execution provider that runs it.

    Nodes that the engine computed once and folded away while it loaded the model do not appear.
    """

    name: str
    op_type: str
    domain: str
    provider: str

    @property
    def operator(self) -> str:
        """``domain.OpType``, or ``OpType`` alone for the default domain."""
        return f"{self.domain}.{self.op_type}" if self.domain not in ("", "ai.onnx") else self.op_type

    def __str__(self) -> str:
        return f"{self.operator} {self.name!r}" if self.name else self.operator


class MisplacedError(UnsupportedModelError):
    """An engine takes a model and runs its nodes elsewhere than the ``fallback`` policy allows."""


def list_nodes(nodes: Sequence[NodePlacement], limit: int = 8) -> str:
    """Name nodes for a message, the first few of them."""
    shown = ", ".join(str(n) for n in nodes[:limit])
    return f"{shown} and {len(nodes) - limit} more" if len(nodes) > limit else shown


def judge(
    placement: Sequence[NodePlacement],
    *,
    requested: Collection[str],
    inserted: Collection[str],
    fallback: Fallback,
    preset: str,
) -> str:
    """Hold a placement to the ``fallback`` policy.

    Parameters
    ----------
    placement : sequence of NodePlacement
        Where every node that was not folded runs.
    requested : collection of str
        The execution providers that were asked for.
    inserted : collection of str
        Names of nodes that an adaptation put in: they run where they run, but are not nodes of the user's model.
    fallback : {"partial", "none", "full"}
    preset : str
        Name for the message.

    Returns
    -------
    str
        What the user is to be warned of; empty where all runs as requested.

    Raises
    ------
    MisplacedError
        ``partial`` and none of the model's own nodes runs on a requested provider, or ``none`` and any node runs
        elsewhere.
    """
    elsewhere = [n for n in placement if n.provider not in requested]
    if not elsewhere:
        return ""
    asked = " or ".join(requested)
    others = ", ".join(sorted({n.provider for n in elsewhere}))
    text = (
        f"{preset}: {len(elsewhere)} of {len(placement)} nodes run on {others}, not on {asked}: {list_nodes(elsewhere)}"
    )
    operators = sorted({n.operator for n in elsewhere})
    reasons = [f"{n}: {asked} does not take this node; it would run on {n.provider}" for n in elsewhere]
    if fallback == "none":
        raise MisplacedError(
            f"{text}. {option_words.given('fallback', 'none')} refuses that; use {option_words.given('fallback', 'partial')} to let them run there.",
            operators=operators,
            reasons=reasons,
        )
    own = [n for n in placement if n.name not in inserted]
    if fallback == "partial" and own and all(n.provider not in requested for n in own):
        raise MisplacedError(
            f"{preset}: no node of the model runs on {asked}; all of them would run on {others}: {list_nodes(own)}. "
            f"Choose a preset that has these operators, or pass {option_words.given('fallback', 'full')} to run them on {others} anyway.",
            operators=operators,
            reasons=reasons,
        )
    return text
