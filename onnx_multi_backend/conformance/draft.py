# SPDX-License-Identifier: Apache-2.0
"""A first file of expectations for a backend, drafted from a run: somebody has to find the true causes yet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.results import CaseResult

_HEAD = """\
# Drafted from a run on {backend}: {cases} in {groups} of the same message.
# Give each group its true cause, its kind (defect, random or pending) and, where there is one, a link.
"""
_DETAILS = re.compile(r"'[^']*'|\"[^\"]*\"|0x[0-9a-f]+|[-+]?\d[\d.e+-]*|\([^)]*\)|\[[^]]*\]|\S*/\S+", re.IGNORECASE)


def draft_expectations(results: Iterable[CaseResult]) -> str:
    """Return a file of expectations for every failure that nobody expects, grouped by what the error says.

    A crash or a timeout becomes a ``skip``: run under pytest, in one process, it would take other cases with it.

    Parameters
    ----------
    results : iterable of CaseResult
        Of one backend.

    Returns
    -------
    str
        TOML as `expectation_file` describes it.
    """
    groups: dict[tuple[str, str], list[CaseResult]] = {}
    count, backend = 0, ""
    for result in results:
        if result.label.is_failure:
            action = "xfail" if result.label == Label.FAIL else "skip"
            groups.setdefault((action, cause_of(result.headline)), []).append(result)
            count, backend = count + 1, result.backend
    tables = [
        _table(action, members)
        for (action, _), members in sorted(groups.items(), key=lambda item: (item[0][0] != "xfail", -len(item[1])))
    ]
    head = _HEAD.format(
        backend=backend or "a backend", cases=_counted(count, "case"), groups=_counted(len(groups), "group")
    )
    return "\n".join([head, *tables])


def cause_of(message: str) -> str:
    """Reduce a message to what it has in common with others of its kind: no names, numbers, shapes, paths."""
    return " ".join(_DETAILS.sub("…", message).split())


def _counted(count: int, thing: str) -> str:
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _table(action: str, members: list[CaseResult]) -> str:
    names = ",\n".join(f"    {_text(r.name)}" for r in members)
    reason = _text(members[0].headline or f"a {members[0].label} without a message")
    return f'[[{action}]]  # {len(members)}\nnames = [\n{names},\n]\nkind = "defect"\nreason = {reason}\n'


def _text(text: str) -> str:
    """Write a TOML string: JSON's are, but for the delete character, and surrogates, which TOML has no form for."""
    sound = text.encode(errors="backslashreplace").decode()
    return json.dumps(sound, ensure_ascii=False).replace("\x7f", "\\u007f")
