# SPDX-License-Identifier: Apache-2.0
"""Inputs that hold NaN, inf or large numbers, where the engine may lose them: one warning at the first of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

from onnx_multi_backend import option_words
from onnx_multi_backend.engines.placed import runs_on_requested
from onnx_multi_backend.engines.session import Built, Payload
from onnx_multi_backend.engines.special_values.constants import FLOATS, LARGE, special_constants
from onnx_multi_backend.engines.special_values.flows import moved_into
from onnx_multi_backend.engines.special_values.nan_sources import OF_INFINITY
from onnx_multi_backend.engines.target import LARGE_NUMBERS, Lost, Target
from onnx_multi_backend.engines.wrappers.checked import CheckedSession
from onnx_multi_backend.errors import InputError, OnnxMultiBackendError, PrecisionWarning, UnsupportedModelError
from onnx_multi_backend.user_warnings import warn

_T = TensorProto
#: Of types that numpy does not search quickly, the bits of inf: those of NaN are beyond, whatever the sign.
_INFINITE: Mapping[int, int] = {_T.FLOAT16: 0x7C00, _T.BFLOAT16: 0x7F80}
_SIGN = 0x8000

#: Whether the session warns once, or refuses each such run; by the engine's names of inputs, the user's, the types and from where on
#: numbers are large (0 where no operator minds); what is lost.
Kept = tuple[bool, Mapping[str, tuple[str, int, float]], Lost]


def watched(target: Target, payload: Payload, built: Built) -> Built:
    """The session, which warns of NaN and inf in its inputs where an operator of the model may lose them."""
    if not payload.lowering or not target.values_lost:
        return built
    contents = payload.adapted.facts.contents
    lost = _of(target.values_lost, lambda operator: bool(contents.of(operator)))
    own = {edge.engine_name: name for name, edge in payload.adapted.inputs.items()}
    given = payload.adapted.proto.graph.input
    kinds = {v.name: v.type.tensor_type.elem_type for v in given}
    if not lost:
        return built
    minding = moved_into(contents, contents.of(*lost.get(LARGE_NUMBERS, ())))
    names = {
        name: (own.get(name, name), kind, LARGE[kind] if name in minding else 0.0)
        for name, kind in kinds.items()
        if kind in FLOATS
    }
    constants = special_constants(payload.adapted.facts, lost)
    lost = _with_what_is_made(lost) if contents.has(OF_INFINITY) else lost

    def here(lost: Lost) -> Lost:
        return _of(lost, runs_on_requested(target, built))

    refuses = target.precision_policy == "strict"
    for value, made in constants.items():
        notice = Notice(payload.loaded.label, lambda: here(lost), refuses=refuses, error=UnsupportedModelError)
        notice.tell(f"constant {made!r}", value)
        break
    if not names:
        return built
    facts = None if built.facts is None else {**built.facts, "special_inputs": (refuses, names, here(lost))}
    notice = Notice(payload.loaded.label, lambda: here(lost), refuses=refuses)
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


def _session(built: Built, names: Mapping[str, tuple[str, int, float]], notice: Notice) -> CheckedSession:
    return CheckedSession(built.session, [(name, _Watch(notice, *told)) for name, told in names.items()])


class Notice:
    """Warns at the first NaN, inf and large number in the inputs of a session; or refuses each run that has one.

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
        """Tell that something holds a value of `Lost`."""
        if value in self._told:
            return
        lost = self._lost().get(value)
        if not lost or not self._refuses:
            self._told.add(value)
            self.over = self._told >= {"NaN", *self._lost()}
        if not lost:
            return
        what = "; ".join(f"{operator}: {words}" for operator, words in lost.items())
        words = (
            f"{self._label}: {holder} holds {value}, and OpenVINO may make something else of it than ONNX asks for "
            f"({what}). Choose an ONNX Runtime preset where that matters"
        )
        if self._refuses:
            raise self._error(f"{words}, or pass {option_words.given('precision_policy', 'warn')}.")
        warn(f"{words}, or pass {option_words.given('precision_policy', 'strict')} to refuse that.", PrecisionWarning)


class _Watch:
    """Looks at one input, given its name, its type and from where on numbers are large (0: nowhere)."""

    def __init__(self, notice: Notice, name: str, kind: int, large: float) -> None:
        self._notice, self._holder, self._large = notice, f"input {name!r}", large
        self._infinite = _INFINITE.get(kind, 0)
        self._large_bits = _bits_of(large, kind) if large and self._infinite else 0

    def __call__(self, value: Any) -> None:
        if self._notice.over:
            return
        if type(value) is not np.ndarray:
            for part in value if isinstance(value, (list, tuple)) else ():
                self(part)
        elif value.size and not self._is_ordinary(value):
            for found in self._found(value.astype(np.float32) if self._infinite else value):
                self._notice.tell(self._holder, found)

    def _is_ordinary(self, array: np.ndarray[Any, Any]) -> bool:
        """Whether an array holds nothing to tell: a NaN is the largest of all, and the first of numpy's argmax."""
        if self._infinite:
            signed = array.view(np.int16)
            if int(signed.item(signed.argmax())) >= (self._large_bits or self._infinite):
                return False
            bits = array.view(np.uint16)  # negative ones are the largest
            return int(bits.item(bits.argmax())) < _SIGN + (self._large_bits or self._infinite + 1)
        most = array.item(array.argmax())
        if not self._large:
            return bool(most < np.inf)
        return bool(most < self._large and array.item(array.argmin()) > -self._large)

    def _found(self, numbers: np.ndarray[Any, Any]) -> Iterator[str]:
        """What is to be told of numbers that are not ordinary; -inf is not."""
        if np.isnan(numbers).any():
            yield "NaN"
        if np.isposinf(numbers).any():
            yield "inf"
        if self._large and (np.abs(numbers[np.isfinite(numbers)]) >= self._large).any():
            yield LARGE_NUMBERS


def _bits_of(number: float, kind: int) -> int:
    dtype = np.float16 if kind == _T.FLOAT16 else ml_dtypes.bfloat16
    return int(np.array(number, dtype).view(np.uint16))
