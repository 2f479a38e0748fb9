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

import sys
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from onnx_multi_backend.conformance.versions import installed_version
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


def read_expectations(path: Path) -> list[Expectation]:
    """Read the entries of a file.

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
    return entries


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
