# SPDX-License-Identifier: Apache-2.0
"""What rules write of each form, made beforehand: ``python -m backend_test.unit.special_values.made FILE``.

A rule's work is asking the engine about one node after the other, which takes minutes on an emulated processor; what it
writes is the same there. So the host makes the models, and the emulated processor computes them.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
from pathlib import Path
from typing import NamedTuple

#: The variable that names the file for the tests.
FILE = "OMB_SPECIAL_VALUES"


class Made(NamedTuple):
    """A rewritten model, and the rules that were put to work."""

    model: bytes
    rules: tuple[str, ...]


@functools.cache
def _read(path: str) -> dict[tuple[str, int], Made]:
    made: dict[tuple[str, int], Made] = pickle.loads(Path(path).read_bytes())
    return made


def made(engine: str, number: int) -> Made | None:
    """What was made of a form for an engine; None where nothing was made beforehand."""
    path = os.environ.get(FILE)
    return _read(path)[engine, number] if path else None


def main(path: Path) -> None:
    from backend_test.unit.special_values.test_rules import FORMS, TARGETS, make

    found = {
        (engine, number): make(form, engine)
        for engine in TARGETS
        for number, form in enumerate(FORMS)
        if form.only in ("", engine)
    }
    path.write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
