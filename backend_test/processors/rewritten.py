# SPDX-License-Identifier: Apache-2.0
"""What the host's engine had each case rewritten into: ``python -m backend_test.processors.rewritten PRESET FILE SHARES``.

Rewriting asks the engine about one node after the other, which is most of the work on an emulated processor. So the host asks, and
the emulated processor is shown the rewritten models first. It asks for itself where it does not take one, or would compute it
wrongly.
"""

from __future__ import annotations

import itertools
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from backend_test.processors.official import adapted_cases, share_of
from onnx_multi_backend.adapt import Adapted, lowering
from onnx_multi_backend.adapt.engine import digest_of
from onnx_multi_backend.conformance.cases import load_model
from onnx_multi_backend.presets.registry import get_preset

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


def use(path: Path) -> None:
    """Have this process, and those that it forks, begin with what `main` wrote."""
    taken: Taken = pickle.loads(path.read_bytes())
    lowering.lower = replaying(lowering.lower, taken)


def main(preset: str, path: Path, shares: Sequence[str]) -> None:
    taken: Taken = {}
    lowering.lower = recording(lowering.lower, taken)
    warnings.simplefilter("ignore")  # the suite tells what they are about
    cases = adapted_cases(preset)
    for case in itertools.chain.from_iterable(share_of(cases, share) for share in shares):
        get_preset(preset).prepare(load_model(case))
    path.write_bytes(pickle.dumps(taken))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3].split(","))
