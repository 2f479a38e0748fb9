# SPDX-License-Identifier: Apache-2.0
"""Where ``conformance`` writes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onnx_multi_backend.conformance import (
    Changes,
    Report,
    draft_expectations,
    write_reports,
    write_scoreboard,
    write_text,
)
from onnx_multi_backend.errors import OptionError


@dataclass(frozen=True)
class Targets:
    """The folders and the file that the command line names, as far as it does."""

    out: Path | None
    scoreboard_dir: Path | None
    write_expectations: Path | None

    def check(self) -> None:
        """Look whether all of it can be written, before anything slow is done.

        Raises
        ------
        OptionError
        """
        if self.write_expectations is not None and self.write_expectations.exists():
            raise OptionError(
                f"--write-expectations {self.write_expectations}: the file exists. Name another, or remove it."
            )
        for option, path, folder in self._folders():
            try:
                with tempfile.TemporaryFile(dir=next(p for p in (folder, *folder.parents) if p.exists())):
                    pass
            except OSError as error:
                raise OptionError(f"{option} {path}: nothing can be written there: {error.strerror}.") from error

    def write(
        self, report: Report, changes: Changes | None = None, against: str = "", *, selected: bool = False
    ) -> None:
        """Write what was asked for; `changes` are those since the report `against`, `selected`: cases were left out.

        Raises
        ------
        OSError
        """
        if self.out:
            write_reports(report, self.out, changes, against)
        if self.scoreboard_dir:
            write_scoreboard(report, self.scoreboard_dir, trend=not selected)
        if self.write_expectations:
            write_text(self.write_expectations, draft_expectations(report.cases))

    def written(self) -> Iterator[Path]:
        """What there is to look at afterwards."""
        yield from filter(None, (self.out and self.out / "index.html", self.scoreboard_dir, self.write_expectations))

    def _folders(self) -> Iterator[tuple[str, Path, Path]]:
        if self.out:
            yield "--out", self.out, self.out.absolute()
        if self.scoreboard_dir:
            yield "--scoreboard-dir", self.scoreboard_dir, self.scoreboard_dir.absolute()
        if self.write_expectations:
            yield "--write-expectations", self.write_expectations, self.write_expectations.absolute().parent
