# SPDX-License-Identifier: Apache-2.0
"""The words for what came of one official case on one backend."""

from __future__ import annotations

from enum import StrEnum


class Label(StrEnum):
    """What came of a case; exactly one for each case and backend.

    Attributes
    ----------
    meaning : str
        What it says, in some words.
    """

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Label:
        label = str.__new__(cls, word)
        label._value_, label.meaning = word, meaning
        return label

    NATIVE = "native", "passed, every node on the engine that was asked for"
    ADAPTED = "adapted", "passed on the engine that was asked for, after the model was adapted to it"
    FALLBACK = "fallback", "passed, with some nodes on another execution provider"
    PASS = "pass", "passed on a backend that does not report where the nodes ran"
    UNSUPPORTED = "unsupported", "refused (UnsupportedModelError)"
    XFAIL = "xfail", "failed, as an expectation with a reason says it does"
    SKIP = "skip", "not run, or skipped by the backend itself"
    FAIL = "fail", "a wrong result, or an error that says nothing about support"
    CRASH = "crash", "the process died"
    TIMEOUT = "timeout", "the case took too long and was stopped"

    @property
    def is_pass(self) -> bool:
        """Whether the results were right."""
        return self in _PASSES

    @property
    def is_failure(self) -> bool:
        """Whether it says neither that the results were right nor that there were to be none."""
        return self in _FAILURES

    def is_worse_than(self, other: Label) -> bool:
        """Whether going from ``other`` to this label loses something; labels of one rank are equally good."""
        return _RANK[self] > _RANK[other]


_PASSES = frozenset({Label.NATIVE, Label.ADAPTED, Label.FALLBACK, Label.PASS})
_FAILURES = frozenset({Label.FAIL, Label.CRASH, Label.TIMEOUT})
_BEST_FIRST = (
    (Label.NATIVE, Label.PASS),
    (Label.ADAPTED,),
    (Label.FALLBACK,),
    (Label.UNSUPPORTED,),
    (Label.SKIP,),
    (Label.XFAIL,),
    (Label.FAIL, Label.TIMEOUT, Label.CRASH),
)
_RANK = {label: rank for rank, labels in enumerate(_BEST_FIRST) for label in labels}
