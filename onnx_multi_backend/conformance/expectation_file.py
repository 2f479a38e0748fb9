# SPDX-License-Identifier: Apache-2.0
"""Files that say which cases are known to fail, and why.

::

    [[xfail]]
    name = "test_cumprod_1d_cpu"        # or names = [...], or for a whole family glob = "test_cumprod_*"
    reason = "OpenVINO has no CumProd and says so with a bare RuntimeError"
    kind = "defect"                     # of the engine; or "random", or "pending" with mended_by = "..."
    link = "https://github.com/..."     # optional
    when = {openvino = ">=2026.4,<2027", instruction_set = "avx512f"}  # optional: all must hold; see `applies`

    [[skip]]                            # the same, for a case that kills the process: it is not run
    ...

They are for wrong results and errors that say nothing about support; an `unsupported` case needs no entry. They are
strict both ways: an entry whose case passes is a failure, and so is one that matches no case.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.host.applies import applies, fault

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
        """Whether the entry is for this host: its platform, its processor and its versions."""
        return applies(self.when)

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


def _parse(table: Any, action: str, where: str) -> Expectation:
    def check(holds: object, otherwise: str) -> None:
        if not holds:
            raise ExpectationError(f"{where}: {otherwise}")

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
    wrong = fault(when)
    check(not wrong, wrong)
    fields = {key: table[key] for key in ("glob", "mended_by", "link") if key in table}
    return Expectation(action, table["reason"], table["kind"], where, tuple(names), when=when, **fields)


def _listed(words: Collection[str]) -> str:
    return ", ".join(repr(w) for w in sorted(words))
