# SPDX-License-Identifier: Apache-2.0
"""The inputs that configurations are timed and compared on: the user's, or drawn at random."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from onnx_multi_backend import option_words
from onnx_multi_backend.adapt.pipeline import untouched
from onnx_multi_backend.errors import InputError, OptionError
from onnx_multi_backend.models import random_inputs
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.running.feeds import FeedMaker
from onnx_multi_backend.sessions.signature import Signature, signature

#: How many inputs are drawn, and how many of the user's are compared on at most.
DRAWN, COMPARED = 3, 8


class Examples(NamedTuple):
    """Inputs by name; the first are timed, all are compared on.

    Attributes
    ----------
    feeds : list of dict of str to array
    random : bool
        Whether they were drawn.
    signature : Signature
        Of the model.
    """

    feeds: list[dict[str, Any]]
    random: bool
    signature: Signature

    @property
    def described(self) -> dict[str, str]:
        """Type and shape of each input that is timed."""
        return {name: _described(value) for name, value in self.feeds[0].items()}

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of the inputs that are timed."""
        return {name: tuple(value.shape) for name, value in self.feeds[0].items() if hasattr(value, "shape")}


def examples_of(
    loaded: LoadedModel,
    given: Any,
    data: Iterable[Any] | None,
    shapes: Mapping[str, Sequence[int]] | None,
    seed: int = 0,
) -> Examples:
    """Check the user's inputs, or draw some.

    Parameters
    ----------
    loaded : LoadedModel
    given : array, list, tuple, mapping or None
        One input in any of the three forms.
    data : iterable, optional
        Further inputs; the first of them is timed where `given` is None.
    shapes : mapping of str to sequence of int, optional
        Of inputs that are drawn.
    seed : int
        The first one's; the others have the next ones.

    Raises
    ------
    InputError
        They do not fit the model.
    OptionError
        A shape does not fit its input.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise OptionError(f"seed is a whole number, at least 0; {seed!r} was given.")
    made = signature(loaded, untouched(loaded.proto))
    feed = FeedMaker(made)
    inputs = [] if given is None else [feed(given)]
    if data is not None:
        inputs += [feed(batch) for batch in itertools.islice(data, COMPARED - len(inputs))]
    if inputs:
        if shapes:
            raise OptionError(
                f"{option_words.named('shapes')}: these are of inputs that are drawn at random. Leave them out beside inputs."
            )
        return Examples(inputs, random=False, signature=made)
    sizes = random_inputs.sizes_of(shapes or {}, made.inputs)
    below = random_inputs.tables(loaded.proto)
    try:
        seeds = range(seed, seed + (DRAWN if made.inputs else 1))
        drawn = [feed(random_inputs.draw(made.inputs, own, sizes, below)) for own in seeds]
    except InputError as error:
        raise InputError(
            f"{made.label}: no inputs can be drawn: {error} Give them with {option_words.named('input_example')}."
        ) from error
    return Examples(drawn, random=True, signature=made)


def _described(value: Any) -> str:
    if isinstance(value, list):
        return f"sequence of {len(value)}"
    if not hasattr(value, "dtype"):
        return type(value).__name__
    return f"{value.dtype.name} [{', '.join(map(str, value.shape))}]"
