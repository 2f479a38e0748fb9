# SPDX-License-Identifier: Apache-2.0
"""A report as the HTML page holds it: whatever occurs often is there once, and numbers refer to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onnx_multi_backend.conformance.case_facts import CaseFacts, OperatorUse
from onnx_multi_backend.conformance.cases import case_name
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.changes import Changes
from onnx_multi_backend.conformance.report.document import BackendRun, Report
from onnx_multi_backend.conformance.results import CaseResult

#: Stands for the operators of a model that has none, so that its case is found too.
_NO_OPERATOR = OperatorUse("", "(no operator)", 0, True, {}, ())

_LABELS = list(Label)


def page_data(report: Report, changes: Changes | None = None) -> dict[str, Any]:
    """Return what the page's ``data.js`` reads.

    Parameters
    ----------
    report : Report
    changes : Changes, optional
        What changed since an earlier report.

    Returns
    -------
    dict
        ``texts``: every text, to which the numbers below refer where nothing else is said.

        ``labels``: the name of each label, and whether it is a pass.

        ``operators``: domain and type. ``uses``: operator, since-version as such, whether in the main graph,
        attributes with their values, types. ``cases``: name (without device where that is the backend's only one),
        kind, uses.

        ``nodes``: provider, domain, type, name. ``placements``: nodes. ``changes``: pass, node, change, reason.
        ``outcomes``: label, reason, error, what is unexpected, changes, placement.

        ``backends``: for each its name as such, the suffix that completes the names of its cases, and for each case
        the outcome (-1 for none) and the duration in milliseconds as such; by case, the label that it had before.

        ``changed``: what kind of change it is as such, case, backend, what the new result says as such.
    """
    tables = _Tables()
    columns = []
    for run in report.backends.values():
        results = report.of(run.name)
        suffix = _suffix(run, results)
        columns.append((run.name, suffix, [tables.result(r, report.models[r.name], suffix) for r in results]))
    backends: list[dict[str, Any]] = []
    for name, suffix, numbered in columns:  # only now all cases are known
        outcomes, durations = [-1] * len(tables.cases), [0.0] * len(tables.cases)
        for case, outcome, duration in numbered:
            outcomes[case], durations[case] = outcome, duration
        backends.append({"name": name, "suffix": suffix, "outcomes": outcomes, "durations": durations, "was": {}})
    changed = []
    places = {run.name: place for place, run in enumerate(report.backends.values())}
    for change in changes.labels if changes else ():
        place = places[change.backend]
        case = tables.number(change.name, report.models[change.name], backends[place]["suffix"])
        backends[place]["was"][case] = _LABELS.index(change.old)
        changed.append((change.kind, case, place, change.headline))
    return {
        "labels": [[label.value, label.is_pass] for label in _LABELS],
        **{name: list(table) for name, table in vars(tables).items()},
        "backends": backends,
        "changed": changed,
    }


class _Table(dict[Any, int]):
    """Numbers things in the order in which they are first asked for."""

    def __missing__(self, thing: Any) -> int:
        self[thing] = len(self)
        return self[thing]


class _Tables:
    def __init__(self) -> None:
        self.texts = _Table()
        self.operators = _Table()
        self.uses = _Table()
        self.cases = _Table()
        self.nodes = _Table()
        self.placements = _Table()
        self.changes = _Table()
        self.outcomes = _Table()

    def result(self, result: CaseResult, facts: CaseFacts, suffix: str) -> tuple[int, int, float]:
        """Number a case and its outcome; backends of different devices share the case if the model is the same."""
        case = self.number(result.name, facts, suffix)
        return case, self.outcomes[self._outcome(result)], result.duration_ms

    def number(self, name: str, facts: CaseFacts, suffix: str) -> int:
        """Number a case by its name in a report."""
        uses = tuple(self.uses[self._use(use)] for use in facts.operators or (_NO_OPERATOR,))
        return self.cases[(self.texts[name.removesuffix(suffix)], self.texts[facts.kind], uses)]

    def _use(self, use: OperatorUse) -> tuple[Any, ...]:
        attributes = tuple((self.texts[name], self._texts(values)) for name, values in use.attributes.items())
        operator = self.operators[self._texts(use.operator)]
        return operator, use.since_version, use.top_level, attributes, self._texts(use.types)

    def _outcome(self, result: CaseResult) -> tuple[Any, ...]:
        nodes = tuple(self.nodes[self._texts((n.provider, n.domain, n.op_type, n.name))] for n in result.placement)
        return (
            _LABELS.index(result.label),
            *self._texts((result.reason, result.error, result.unexpected)),
            tuple(self.changes[self._texts(change)] for change in result.adaptations),
            self.placements[nodes],
        )

    def _texts(self, texts: Iterable[str]) -> tuple[int, ...]:
        return tuple(self.texts[text] for text in texts)


def _suffix(run: BackendRun, results: Iterable[CaseResult]) -> str:
    """Return the device that ONNX's runner puts behind the name of each case, if it is one and the same."""
    suffix = case_name("", run.devices[0]) if len(run.devices) == 1 else ""
    return suffix if all(r.name.endswith(suffix) for r in results) else ""
