# SPDX-License-Identifier: Apache-2.0
"""A model in other forms that compute the same: what an engine has of a case it may not have of a case in other clothes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random

from onnx import TensorProto

from backend_test.search.forms import neighbours, operands, types, wrapped
from backend_test.search.forms.case import Case as Case


def _behind(make: neighbours.Maker) -> Callable[[Case], Case | None]:
    return lambda case: neighbours.behind(case, make)


def _before(make: neighbours.Maker) -> Callable[[Case], Case | None]:
    return lambda case: neighbours.before(case, make)


_FORMS: Mapping[str, Callable[[Case], Case | None]] = {
    "behind nodes": _behind(neighbours.negated),
    "before nodes": _before(neighbours.negated),
    "in a function": wrapped.in_function,
    "in a branch": wrapped.in_branch,
    "of constants": operands.of_constants,
    "of constants alone": operands.of_constants_alone,
    "in a loop": wrapped.in_loop,
    "in a loop of states": wrapped.in_loop_of_states,
    "in a scan": wrapped.in_scan,
    "beside nodes": neighbours.beside,
    "behind a Transpose": _behind(neighbours.transposed),
    "before a Transpose": _before(neighbours.transposed_after),
    "behind a Squeeze": _behind(neighbours.squeezed),
    "before a Reshape": _before(neighbours.flattened),
    "behind a Slice": _behind(neighbours.in_pieces),
    "before a Concat": _before(neighbours.joined),
    "behind a Cast": _behind(neighbours.cast),
    "before a Cast": _before(neighbours.cast_after),
    "behind arithmetic": _behind(neighbours.scaled),
    "before arithmetic": _before(neighbours.scaled_after),
    "in float64": types.in_type(TensorProto.DOUBLE),
    "in float16": types.in_type(TensorProto.FLOAT16),
    "in bfloat16": types.in_type(TensorProto.BFLOAT16),
    "in int64": types.in_type(TensorProto.INT64),
    "in int32": types.in_type(TensorProto.INT32),
    "in int16": types.in_type(TensorProto.INT16),
    "in int8": types.in_type(TensorProto.INT8),
    "in uint8": types.in_type(TensorProto.UINT8),
    "in uint32": types.in_type(TensorProto.UINT32),
    "in strings": types.in_type(TensorProto.STRING),
}
_OPEN = "with open sizes"
NAMES = (_OPEN, *_FORMS, *(f"{name}, {_OPEN}" for name in _FORMS))


#: Takes a case of another type; returns it with its results, or None where nobody can tell them.
Evaluate = Callable[[Case], Case | None]


def in_form(name: str, case: Case, evaluate: Evaluate = lambda case: case) -> Case | None:
    """The case in one of these forms; None where it has none.

    Parameters
    ----------
    name : str
        Of `NAMES`, or several with ``, `` between them, from the last to the first.
    case : Case
    evaluate : callable
        What becomes of a case in another type before it gets the next form: behind a loop an evaluator may be wrong.
    """
    made: Case | None = case
    for step in reversed(name.split(", ")):
        form = operands.open_sizes if step == _OPEN else _FORMS[step]
        made = form(made) if made is not None else None
        if made is not None and made.results is None:
            made = evaluate(made)
    return made


def pairs(random: Random) -> Iterator[str]:
    """Two forms at a time, drawn at random, without end; every third with open sizes."""
    while True:
        drawn = random.sample(list(_FORMS), 2)
        yield ", ".join((*drawn, _OPEN) if random.random() < 1 / 3 else drawn)
