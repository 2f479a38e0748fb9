# SPDX-License-Identifier: Apache-2.0
"""What is known about one case after it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from onnx_multi_backend.conformance.cases import KINDS
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.reading import take


class PlacedNode(NamedTuple):
    """One node of the prepared model, and the execution provider it ran on."""

    name: str
    op_type: str
    domain: str
    provider: str

    def __str__(self) -> str:
        operator = f"{self.domain}.{self.op_type}" if self.domain not in ("", "ai.onnx") else self.op_type
        return f"{operator} {self.name!r}" if self.name else operator


class Change(NamedTuple):
    """One change that was made to the model so that the engine takes it."""

    pass_name: str
    node: str
    change: str
    reason: str


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What came of one case on one backend.

    Parameters
    ----------
    backend : str
        The name of the backend, a preset's for instance.
    name : str
        The case as ONNX's own runner names it, with its device: ``test_abs_cpu``.
    kind : str
        ``node``, ``real``, ``simple``, ``pytorch-converted`` or ``pytorch-operator``.
    label : Label
    reason : str
        Why the label is what it is; empty for ``pass``, ``fail`` and most of ``native``.
    adaptations : tuple of Change
    placement : tuple of PlacedNode
        Empty where the backend does not tell, and where every node was folded at load.
    duration_ms : float
        Wall time in milliseconds of prepare, run and compare together.
    error : str
        ``Type: message`` of the exception behind a ``fail``; the last words of a process that died.
    unexpected : str
        Why this is not what was expected, in one line; empty when it is.
    """

    backend: str
    name: str
    kind: str
    label: Label
    reason: str = ""
    adaptations: tuple[Change, ...] = ()
    placement: tuple[PlacedNode, ...] = ()
    duration_ms: float = 0.0
    error: str = ""
    unexpected: str = ""

    @property
    def headline(self) -> str:
        """What went wrong, in one line: numpy's AssertionErrors begin with an empty one."""
        # What a process that was ended had printed last may be about anything.
        ended = self.label in (Label.CRASH, Label.TIMEOUT)
        text = (self.reason or self.error) if ended else (self.error or self.reason)
        lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
        return " ".join(lines[: 2 if lines and lines[0].endswith("Error:") else 1])

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON has it; `from_dict` is the way back."""
        return {
            "backend": self.backend,
            "name": self.name,
            "kind": self.kind,
            "label": self.label.value,
            "reason": self.reason,
            "adaptations": [c._asdict() for c in self.adaptations],
            "placement": [n._asdict() for n in self.placement],
            "duration_ms": self.duration_ms,
            "error": self.error,
            "unexpected": self.unexpected,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CaseResult:
        """Rebuild a result from what `to_dict` returned."""
        kind = take(values, "kind", str)
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not a kind of case")
        return cls(
            take(values, "backend", str),
            take(values, "name", str),
            kind,
            Label(take(values, "label", str)),
            take(values, "reason", str),
            tuple(Change(*(take(c, name, str) for name in Change._fields)) for c in take(values, "adaptations", list)),
            tuple(PlacedNode(*(take(n, f, str) for f in PlacedNode._fields)) for n in take(values, "placement", list)),
            take(values, "duration_ms", float, int),
            take(values, "error", str),
            take(values, "unexpected", str),
        )


def summarize(results: Iterable[CaseResult]) -> Counter[Label]:
    """Count results by label, in the order of `Label`."""
    counts = Counter(r.label for r in results)
    return Counter({label: counts[label] for label in Label if counts[label]})
