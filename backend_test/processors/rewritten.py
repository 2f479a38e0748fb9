# SPDX-License-Identifier: Apache-2.0
"""What the host's engine had each case rewritten into, written down and shown again.

Rewriting asks the engine about one node after the other, which is most of the work on an emulated processor. So the host asks, and
the emulated processor is shown the rewritten models first. It asks for itself where it does not take one, or would compute it
wrongly.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from onnx_multi_backend.adapt import Adapted, lowering
from onnx_multi_backend.adapt.engine import digest_of

Lower = Callable[..., Iterator[Adapted]]
#: By the digest of a model the one that the engine took in its place.
Taken = dict[bytes, Adapted]


def recording(lower: Lower, taken: Taken) -> Lower:
    """`lower` that writes down which model the engine took: the one after which no other was asked for."""

    def record(adapted: Adapted, *given: Any, **named: Any) -> Iterator[Adapted]:
        key = digest_of(adapted.proto)
        for lowered in lower(adapted, *given, **named):
            taken[key] = lowered
            yield lowered
            del taken[key]

    return record


def replaying(lower: Lower, taken: Taken) -> Lower:
    """`lower` that begins with what was written down."""

    def replay(adapted: Adapted, *given: Any, **named: Any) -> Iterator[Adapted]:
        known = taken.get(digest_of(adapted.proto))
        if known is not None:
            yield known
        yield from lower(adapted, *given, **named)

    return replay


class Replayed:
    """Has this process, and those that it forks, begin with what `making` wrote.

    Parameters
    ----------
    path : Path, optional
        None: there is nothing to begin with.
    """

    def __init__(self, path: Path | None) -> None:
        self._taken: Taken = {} if path is None else pickle.loads(path.read_bytes())

    def __enter__(self) -> None:
        self._lower = lowering.lower
        lowering.lower = replaying(self._lower, self._taken)

    def __exit__(self, *_: object) -> None:
        lowering.lower = self._lower
