# SPDX-License-Identifier: Apache-2.0
"""Why cases did not pass, the most frequent reasons first."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from onnx_multi_backend.conformance.draft import cause_of
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.results import CaseResult

#: What a refusal begins with, another model each time.
_MODEL = re.compile(r"^\S+ cannot run (model )?'[^']*': ")
#: What it ends with: the cure, which is of no use where presets are compared.
_CURE = re.compile(r" (Choose|Correct the model, or choose) [^.]*; `onnx-multi-backend inspect` compares them\.$")


@dataclass(frozen=True, slots=True)
class Reason:
    """What cases with the same label have in common.

    Parameters
    ----------
    label : Label
    text : str
        The reason of the first of them, on one line.
    count : int
        How many there are.
    """

    label: Label
    text: str
    count: int

    def __str__(self) -> str:
        return f"{self.count} {self.label}: {self.text}"


def frequent_reasons(results: Iterable[CaseResult]) -> list[Reason]:
    """Group the results that are not pass by label and by what their reasons have in common, as `cause_of` tells.

    Parameters
    ----------
    results : iterable of CaseResult
        Of one backend.
    """
    found: dict[tuple[Label, str], list[str]] = {}
    for result in results:
        if not result.label.is_pass:
            text = " ".join(_MODEL.sub("", result.reason or result.headline).split())
            found.setdefault((result.label, cause_of(text)), []).append(_CURE.sub("", text))
    reasons = [Reason(label, texts[0], len(texts)) for (label, _), texts in found.items()]
    return sorted(reasons, key=lambda reason: -reason.count)
