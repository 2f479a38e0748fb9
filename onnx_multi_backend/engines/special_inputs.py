# SPDX-License-Identifier: Apache-2.0
"""Inputs that hold NaN or inf, where the engine may lose it: one warning at the first of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.engines.checked import CheckedSession
from onnx_multi_backend.engines.nan_sources import OF_INFINITY
from onnx_multi_backend.engines.placed import runs_on_requested
from onnx_multi_backend.engines.session import Built, Payload
from onnx_multi_backend.engines.special_constants import FLOATS, special_constants
from onnx_multi_backend.engines.target import Lost, Target
from onnx_multi_backend.errors import InputError, OnnxMultiBackendError, PrecisionWarning, UnsupportedModelError
from onnx_multi_backend.user_warnings import warn

_T = TensorProto
#: Of types that numpy does not search quickly, the bits of inf: those of NaN are beyond, whatever the sign.
_INFINITE: Mapping[int, int] = {_T.FLOAT16: 0x7C00, _T.BFLOAT16: 0x7F80}
_SIGN = 0x8000

#: Whether the session warns once, or refuses each such run; by the engine's names of inputs, the user's and the types; what is lost.
Kept = tuple[bool, Mapping[str, tuple[str, int]], Lost]


def watched(target: Target, payload: Payload, built: Built) -> Built:
    """The session, which warns of NaN and inf in its inputs where an operator of the model may lose them."""
    if not payload.lowering or not target.values_lost:
        return built
    contents = payload.adapted.facts.contents
    lost = _of(target.values_lost, lambda operator: bool(contents.of(operator)))
    own = {edge.engine_name: name for name, edge in payload.adapted.inputs.items()}
    given = payload.adapted.proto.graph.input
    kinds = {v.name: v.type.tensor_type.elem_type for v in given}
    names = {name: (own.get(name, name), kind) for name, kind in kinds.items() if kind in FLOATS}
    if not lost:
        return built

    def here(lost: Lost) -> Lost:
        return _of(lost, runs_on_requested(target, built))

    refuses = target.precision_policy == "strict"
    for value, made in special_constants(payload.adapted.facts, lost).items():
        notice = Notice(payload.loaded.label, lambda: here(lost), refuses=refuses, error=UnsupportedModelError)
        notice.tell(f"constant {made!r}", value)
        break
    if not names:
        return built
    of_inputs = _with_what_is_made(lost) if contents.has(OF_INFINITY) else lost
    facts = None if built.facts is None else {**built.facts, "special_inputs": (refuses, names, here(of_inputs))}
    notice = Notice(payload.loaded.label, lambda: here(of_inputs), refuses=refuses)
    return replace(built, session=_session(built, names, notice), facts=facts)


def restored(built: Built, kept: Kept | None, label: str) -> Built:
    """The session out of a cache, as `watched` made it."""
    if kept is None:
        return built
    refuses, names, lost = kept
    return replace(built, session=_session(built, names, Notice(label, lambda: lost, refuses=refuses)))


def _with_what_is_made(lost: Lost) -> Lost:
    """What is lost where nodes make NaN of an infinity in an input."""
    made = {operator: f"{words}, of NaN that a node makes of it" for operator, words in lost.get("NaN", {}).items()}
    return {**lost, "inf": {**made, **lost.get("inf", {})}}


def _of(lost: Lost, chosen: Callable[[str], bool]) -> Lost:
    """What some operators lose."""
    found = {value: {o: words for o, words in of.items() if chosen(o)} for value, of in lost.items()}
    return {value: of for value, of in found.items() if of}


def _session(built: Built, names: Mapping[str, tuple[str, int]], notice: Notice) -> CheckedSession:
    return CheckedSession(built.session, [(name, _Watch(notice, *told)) for name, told in names.items()])


class Notice:
    """Warns at the first NaN, and at the first inf, in the inputs of a session; or refuses each run that has one.

    Parameters
    ----------
    label : str
        The model's, for the message.
    lost : callable
        What is lost by which operators; asked when an input holds such a value.
    refuses : bool
    error : type
        What is raised then.

    Attributes
    ----------
    over : bool
        Whether nothing is left to be told.
    """

    def __init__(
        self,
        label: str,
        lost: Callable[[], Lost],
        *,
        refuses: bool,
        error: type[OnnxMultiBackendError] = InputError,
    ) -> None:
        self._label, self._lost, self._refuses, self._error = label, lost, refuses, error
        self._told: set[str] = set()
        self.over = False

    def tell(self, holder: str, value: str) -> None:
        """Tell that something holds NaN or inf."""
        if value in self._told:
            return
        lost = self._lost().get(value)
        if not lost or not self._refuses:
            self._told.add(value)
            self.over = "NaN" in self._told
        if not lost:
            return
        what = "; ".join(f"{operator}: {words}" for operator, words in lost.items())
        words = (
            f"{self._label}: {holder} holds {value}, and OpenVINO may make something else of it than ONNX asks for "
            f"({what}). Choose an ONNX Runtime preset where NaN has to reach the results"
        )
        if self._refuses:
            raise self._error(f"{words}, or pass precision_policy='warn'.")
        warn(f"{words}, or pass precision_policy='strict' to refuse that.", PrecisionWarning)


class _Watch:
    """Looks at one input, given its name and type."""

    def __init__(self, notice: Notice, name: str, kind: int) -> None:
        self._notice, self._holder, self._infinite = notice, f"input {name!r}", _INFINITE.get(kind, 0)

    def __call__(self, value: Any) -> None:
        if self._notice.over:
            return
        if type(value) is not np.ndarray:
            for part in value if isinstance(value, (list, tuple)) else ():
                self(part)
        elif self._infinite:
            if value.size and (found := _found(value, self._infinite)):
                self._notice.tell(self._holder, found)
        elif value.size:
            most = value.item(
                value.argmax()
            )  # the first NaN, else the largest number: the quickest of numpy's reductions
            if most != most or most == np.inf:
                self._notice.tell(self._holder, "inf" if most == np.inf else "NaN")


def _found(array: np.ndarray[Any, Any], infinite: int) -> str:
    """NaN where an array of 16 bits holds one, else inf, else nothing."""
    bits = array.view(np.uint16)
    if int(bits.item(bits.argmax())) > infinite + _SIGN:  # negative
        return "NaN"
    signed = array.view(np.int16)
    largest = int(signed.item(signed.argmax()))
    return "NaN" if largest > infinite else "inf" if largest == infinite else ""
