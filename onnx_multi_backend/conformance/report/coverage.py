# SPDX-License-Identifier: Apache-2.0
"""Which operators a backend passes, by domain and operator, and what of them was tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from onnx import defs

from onnx_multi_backend.conformance.case_facts import DEFAULT_DOMAIN, OperatorUse
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import Report


class Operator(NamedTuple):
    """An operator; the default domain is called ``ai.onnx``."""

    domain: str
    op_type: str

    def __str__(self) -> str:
        return self.op_type if self.domain == DEFAULT_DOMAIN else f"{self.domain}.{self.op_type}"


def default_first(operator: Operator) -> tuple[bool, str, str]:
    """Sort operators by domain, the default domain before all others, and by type."""
    return operator.domain != DEFAULT_DOMAIN, *operator


@dataclass
class Tried:
    """What of an operator some cases tried.

    Parameters
    ----------
    cases : int
        How many cases have the operator.
    since_versions : set of int
        The versions of the operator.
    attributes : dict of str to set of str
        The values that each attribute was given.
    types : set of str
        The types at inputs, as ``tensor(float)``.
    """

    cases: int = 0
    since_versions: set[int] = field(default_factory=set)
    attributes: dict[str, set[str]] = field(default_factory=dict)
    types: set[str] = field(default_factory=set)

    def add(self, use: OperatorUse) -> None:
        """Count a case."""
        self.cases += 1
        if use.since_version:
            self.since_versions.add(use.since_version)
        self.types.update(use.types)
        for name, values in use.attributes.items():
            self.attributes.setdefault(name, set()).update(values)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON has them: of an attribute how many values."""
        return {
            "cases": self.cases,
            "since_versions": sorted(self.since_versions),
            "attributes": {name: len(values) for name, values in sorted(self.attributes.items())},
            "types": sorted(self.types),
        }


@dataclass
class OperatorCoverage:
    """One operator on one backend.

    Parameters
    ----------
    operator : Operator
    tried : Tried
        By all its cases.
    by_label : dict of Label to Tried
        By the cases with each label.
    passed_as_onnx_counts : bool
        Whether a case that passed has it in its main graph: what ONNX's own report calls passed.
    """

    operator: Operator
    tried: Tried = field(default_factory=Tried)
    by_label: dict[Label, Tried] = field(default_factory=dict)
    passed_as_onnx_counts: bool = False

    @property
    def passes(self) -> int:
        """How many of its cases passed."""
        return sum(tried.cases for label, tried in self.by_label.items() if label.is_pass)

    @property
    def passed(self) -> bool:
        """Whether every one of its cases passed."""
        return self.passes == self.tried.cases

    def to_dict(self) -> dict[str, Any]:
        """Return the coverage as JSON has it."""
        return {
            "domain": self.operator.domain,
            "op_type": self.operator.op_type,
            "passed": self.passed,
            "passed_as_onnx_counts": self.passed_as_onnx_counts,
            **self.tried.to_dict(),
            "by_label": {label.value: self.by_label[label].to_dict() for label in Label if label in self.by_label},
        }


def operator_coverage(report: Report, backend: str) -> dict[Operator, OperatorCoverage]:
    """Return the operators of one backend's cases, sorted by domain (the default first) and operator.

    An operator belongs to every case whose model has it, in subgraphs and functions too.
    """
    found: dict[Operator, OperatorCoverage] = {}
    for case in report.of(backend):
        for use in report.models[case.name].operators:
            operator = Operator(*use.operator)
            entry = found.setdefault(operator, OperatorCoverage(operator))
            entry.tried.add(use)
            entry.by_label.setdefault(case.label, Tried()).add(use)
            entry.passed_as_onnx_counts |= case.label.is_pass and use.top_level
    return {o: found[o] for o in sorted(found, key=default_first)}


def known_operators() -> frozenset[Operator]:
    """Every operator that the installed onnx has a schema of."""
    return frozenset(Operator(s.domain or DEFAULT_DOMAIN, s.name) for s in defs.get_all_schemas())


def coverage_of_all(report: Report) -> Mapping[str, Any]:
    """Return the coverage of every backend as JSON has it."""
    return {name: [c.to_dict() for c in operator_coverage(report, name).values()] for name in report.backends}
