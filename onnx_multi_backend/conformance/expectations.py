# SPDX-License-Identifier: Apache-2.0
"""Files that say which cases are known to fail, and why.

::

    [[xfail]]
    name = "test_cumprod_1d_cpu"        # or names = [...], or for a whole family glob = "test_cumprod_*"
    reason = "OpenVINO has no CumProd and says so with a bare RuntimeError"
    kind = "defect"                     # of the engine; or "random", or "pending" with mended_by = "..."
    link = "https://github.com/..."     # optional
    when = {openvino = ">=2026.4,<2027", platform = "linux"}  # optional: all of them must hold

    [[skip]]                            # the same, for a case that kills the process: it is not run
    ...

They are for wrong results and errors that say nothing about support; an `unsupported` case needs no entry. They are
strict both ways: an entry whose case passes is a failure, and so is one that matches no case.
"""

from __future__ import annotations

import functools
import sys
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.errors import OnnxMultiBackendError

ACTIONS = ("xfail", "skip")
CAUSES = ("defect", "random", "pending")
_FIELDS = {"name", "names", "glob", "reason", "kind", "mended_by", "link", "when"}


class ExpectationError(OnnxMultiBackendError, ValueError):
    """A file of expectations is malformed; the message names the file, the entry and the fault."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One entry; see the module for the meaning of the fields, and ``where`` for its place in the file."""

    action: str
    reason: str
    kind: str
    where: str
    names: tuple[str, ...] = ()
    glob: str = ""
    mended_by: str = ""
    link: str = ""
    when: Mapping[str, str] = field(default_factory=dict)

    @property
    def applies(self) -> bool:
        """Whether the entry is for this platform and these versions."""
        return all(
            sys.platform == wanted if subject == "platform" else _installed(subject, wanted)
            for subject, wanted in self.when.items()
        )

    def __str__(self) -> str:
        notes = [self.kind, self.mended_by and f"mended by {self.mended_by}", self.link]
        return f"{self.reason} [{', '.join(n for n in notes if n)}]"


class Verdict(NamedTuple):
    """A result as the expectations see it, and why the run fails for it (None: it does not)."""

    result: CaseResult
    failure: str | None


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
        try:
            document = tomllib.loads(path.read_text(encoding="utf-8"))
        except ValueError as e:
            raise ExpectationError(f"{path}: not TOML: {e}") from e
        if unknown := set(document) - set(ACTIONS):
            raise ExpectationError(f"{path}: unknown table {_listed(unknown)}; expected {_listed(ACTIONS)}")
        entries = []
        for action in ACTIONS:
            tables = document.get(action, [])
            if not isinstance(tables, list):
                raise ExpectationError(f"{path}: write [[{action}]] with two brackets, once for each entry")
            entries += [_parse(t, action, f"{path}: [[{action}]] number {i}") for i, t in enumerate(tables, 1)]
        return cls(entries)

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

    def judge(self, result: CaseResult) -> Verdict:
        """Hold a result against its entry.

        A failure that was expected becomes `xfail`. An entry whose case passes, or is refused with
        `UnsupportedModelError`, is stale and fails the run; only the results of ``random`` cases may agree by chance.
        """
        entry, label = self.find(result.name), result.label
        if entry is None or entry.action != "xfail" or label == Label.SKIP:
            return Verdict(result, None)
        if label == Label.UNSUPPORTED:
            return Verdict(result, f"needs no expectation, it is unsupported: remove it from {entry.where}")
        if label.is_pass and entry.kind != "random":
            return Verdict(result, f"unexpected pass ({label}): remove it from {entry.where} ({entry})")
        return Verdict(replace(result, label=Label.XFAIL, reason=str(entry)), None)

    def stale(self, names: Collection[str]) -> list[str]:
        """Return one line for each name and glob that matches none of the suite's cases."""
        known = set(names)
        lines = []
        for entry in self.entries:
            lines += [f"{entry.where}: no case is named {name!r}" for name in entry.names if name not in known]
            if entry.glob and not any(fnmatchcase(name, entry.glob) for name in known):
                lines.append(f"{entry.where}: no case matches {entry.glob!r}")
        return lines


def installed_version(name: str) -> str | None:
    """Return the version of a package, by its import name first: ``onnxruntime`` is onnxruntime-gpu's version too."""
    for distribution in (*_distributions().get(name, ()), name):
        try:
            return metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return None


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return metadata.packages_distributions()


def _installed(package: str, wanted: str) -> bool:
    version = installed_version(package)
    return version is not None and SpecifierSet(wanted).contains(version, prereleases=True)


def _parse(table: Any, action: str, where: str) -> Expectation:
    def check(holds: object, fault: str) -> None:
        if not holds:
            raise ExpectationError(f"{where}: {fault}")

    check(isinstance(table, dict), f"write [[{action}]] and fields under it")
    check(set(table) <= _FIELDS, f"unknown field {_listed(set(table) - _FIELDS)}; known are {_listed(_FIELDS)}")
    for key in set(table) - {"names", "when"}:
        check(isinstance(table[key], str) and table[key].strip(), f"{key} must be a string with something in it")
    check(len({"name", "names", "glob"} & set(table)) == 1, "give one of name, names and glob")
    names = table.get("names", [table["name"]] if "name" in table else [])
    check(isinstance(names, list) and all(isinstance(n, str) for n in names), "names must be a list of strings")
    check(names or "glob" in table, "names is empty")
    check("glob" not in table or set(table["glob"]) & set("*?["), "glob has no wildcard; use name")
    check("reason" in table, "a reason is required")
    check(table.get("kind") in CAUSES, f"kind is required, one of {_listed(CAUSES)}")
    check(("mended_by" in table) == (table["kind"] == "pending"), "mended_by goes with kind 'pending', and only there")
    when = table.get("when", {})
    check(
        isinstance(when, dict) and all(isinstance(v, str) for v in when.values()),
        "when must be a table of strings, such as {onnxruntime = '>=1.31', platform = 'linux'}",
    )
    for package, specifier in when.items():
        try:
            if package != "platform":
                SpecifierSet(specifier)
        except InvalidSpecifier:
            check(False, f"when: {package} = {specifier!r} is no version specifier, such as '>=1.31,<1.32'")
    fields = {key: table[key] for key in ("glob", "mended_by", "link") if key in table}
    return Expectation(action, table["reason"], table["kind"], where, tuple(names), when=when, **fields)


def _listed(words: Collection[str]) -> str:
    return ", ".join(repr(w) for w in sorted(words))
