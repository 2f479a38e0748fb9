# SPDX-License-Identifier: Apache-2.0
"""Which cases are known to fail, held against what happened. `expectation_file` says how they are written down."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

from onnx_multi_backend.conformance.expectation_file import Expectation, ExpectationError, read_expectations
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.host.processor import Processor


class Expectations:
    """The entries of one file that apply to this platform and these versions.

    Parameters
    ----------
    entries : sequence of Expectation
        Those that do not apply are dropped.

    Raises
    ------
    ExpectationError
        Two entries that apply name the same case.
    """

    def __init__(self, entries: Sequence[Expectation] = ()) -> None:
        self.entries = tuple(e for e in entries if e.applies)
        self._by_name: dict[str, Expectation] = {}
        for entry in self.entries:
            for name in entry.names:
                if name in self._by_name:
                    raise ExpectationError(f"{entry.where}: {name!r} is in {self._by_name[name].where} already")
                self._by_name[name] = entry

    @classmethod
    def load(cls, path: Path) -> Expectations:
        """Read a TOML file of expectations.

        Raises
        ------
        ExpectationError
            The file is malformed.
        OSError
            It cannot be read.
        """
        return cls(read_expectations(path))

    def find(self, name: str) -> Expectation | None:
        """Return the entry for a case; one that names it goes before a glob."""
        if name in self._by_name:
            return self._by_name[name]
        return next((e for e in self.entries if e.glob and fnmatchcase(name, e.glob)), None)

    def skipped(self, backend: str, name: str, kind: str) -> CaseResult | None:
        """Return the result of a case that must not be run, and None for any other."""
        entry = self.find(name)
        if entry is None or entry.action != "skip":
            return None
        return CaseResult(backend, name, kind, Label.SKIP, str(entry))

    def judge(self, result: CaseResult, *, strict: bool = True) -> CaseResult:
        """Hold a result against its entry, and say in ``unexpected`` what is not as expected.

        A failure that was expected becomes `xfail`. An entry whose case passes, or is refused with
        `UnsupportedModelError`, is stale; only the results of ``random`` cases may agree by chance.

        Parameters
        ----------
        result : CaseResult
        strict : bool, default True
            Whether a stale entry is unexpected. It is not where the backend runs with other options than the entries
            were written for.
        """
        entry, label = self.find(result.name), result.label
        if entry is None or entry.action != "xfail" or label == Label.SKIP:
            return replace(result, unexpected=f"{label}: {result.headline}") if label.is_failure else result
        if label.is_failure or (label.is_pass and entry.kind == "random"):
            return replace(result, label=Label.XFAIL, reason=str(entry))
        if not strict:
            return result
        if label == Label.UNSUPPORTED:
            fault = f"needs no expectation, it is unsupported: remove it from {entry.where}"
        else:
            fault = f"unexpected pass ({label}): remove it from {entry.where} ({entry})"
        return replace(result, unexpected=fault)

    def new_on_this_processor(self, result: CaseResult, before: Processor | None) -> bool:
        """Whether a result is `xfail` or `skip` by an entry that holds on this processor and not on another.

        Parameters
        ----------
        result : CaseResult
        before : Processor or None
            Where the case's earlier label was obtained; nothing is new against one that is not known.
        """
        entry = self.find(result.name)
        if before is None or entry is None or result.label not in (Label.XFAIL, Label.SKIP):
            return False
        return not applies(entry.when, on=before)

    def stale(self, names: Collection[str]) -> list[str]:
        """Return one line for each name and glob that matches none of the suite's cases."""
        known = set(names)
        lines = []
        for entry in self.entries:
            lines += [f"{entry.where}: no case is named {name!r}" for name in entry.names if name not in known]
            if entry.glob and not any(fnmatchcase(name, entry.glob) for name in known):
                lines.append(f"{entry.where}: no case matches {entry.glob!r}")
        return lines
