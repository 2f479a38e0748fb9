# SPDX-License-Identifier: Apache-2.0
"""What is done already: a file of JSON lines, the first of which says of what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class JournalError(Exception):
    """The journal is another search's."""


class Journal:
    """A journal that is appended to; an interrupted line at its end is dropped.

    Parameters
    ----------
    path : Path
    header : dict
        What the search is: tool, preset, seed. A journal that is resumed must have the same.
    resume : bool
        Go on with one that is there; otherwise it is begun anew.

    Attributes
    ----------
    entries : list of dict
        Those of before.
    """

    def __init__(self, path: Path, header: dict[str, Any], *, resume: bool = False) -> None:
        self.entries: list[dict[str, Any]] = []
        path.parent.mkdir(parents=True, exist_ok=True)
        if resume and path.exists():
            self._read(path, header)
        else:
            path.write_text(json.dumps(header) + "\n", encoding="utf-8")
        self._file = path.open("a", encoding="utf-8")

    def _read(self, path: Path, header: dict[str, Any]) -> None:
        text = path.read_text(encoding="utf-8")
        whole = text[: text.rfind("\n") + 1]
        lines = [json.loads(line) for line in whole.splitlines()]
        if not lines or lines[0] != header:
            raise JournalError(
                f"{path} is the journal of {lines[0] if lines else 'nothing'}; this search is {header}. "
                "Give the same seed and preset, or begin anew without --resume."
            )
        if whole != text:
            path.write_text(whole, encoding="utf-8")
        self.entries = lines[1:]

    @property
    def done(self) -> set[int]:
        """The numbers of the tasks that are done."""
        return {entry["i"] for entry in self.entries}

    def add(self, entry: dict[str, Any]) -> None:
        self.entries.append(entry)
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()
