# SPDX-License-Identifier: Apache-2.0
"""A file of a report is written whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from onnx_multi_backend.conformance.report.files import write_text


def test_folders_are_made_and_newlines_kept(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.csv"
    write_text(path, "é,1\r\nx,2\n")
    assert path.read_bytes() == b"\xc3\xa9,1\r\nx,2\n"
    assert [p.name for p in path.parent.iterdir()] == ["file.csv"]


def test_a_lone_surrogate_does_not_cost_the_file(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "before \udcff after")
    assert (tmp_path / "file").read_text(encoding="utf-8") == "before \\udcff after"


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_text(path, "old")

    def fail(self: Path, target: Path) -> Path:
        assert self.read_text(encoding="utf-8") == "new"  # whole before it takes the other's place
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_text(path, "new")
    assert path.read_text(encoding="utf-8") == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_others_may_read_it_as_they_may_any_new_file(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_text(tmp_path / "file", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644
