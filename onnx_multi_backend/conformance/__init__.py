# SPDX-License-Identifier: Apache-2.0
"""ONNX's official conformance suite, for any backend: each case labelled, each failure expected with a reason.

It knows ONNX's backend interface and no engine. `pytest_suite` plugs it into pytest.
"""

from onnx_multi_backend.conformance.backend_ref import BackendLoadError, BackendRef
from onnx_multi_backend.conformance.baseline import Baseline, BaselineError, Worse, worse
from onnx_multi_backend.conformance.case_facts import CaseFacts, OperatorUse
from onnx_multi_backend.conformance.cases import KINDS, STANDARD_DEVICES, Case
from onnx_multi_backend.conformance.draft import cause_of, draft_expectations
from onnx_multi_backend.conformance.expectation_file import Expectation, ExpectationError
from onnx_multi_backend.conformance.expectations import Expectations
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.protocol import protocol_suite
from onnx_multi_backend.conformance.report.changes import (
    Changes,
    LabelChange,
    compare_reports,
    describe_changes,
    render_changes,
)
from onnx_multi_backend.conformance.report.coverage import Operator, OperatorCoverage, operator_coverage
from onnx_multi_backend.conformance.report.document import BackendRun, Report, ReportError
from onnx_multi_backend.conformance.report.files import write_text
from onnx_multi_backend.conformance.report.merge import merge
from onnx_multi_backend.conformance.report.reasons import Reason, frequent_reasons
from onnx_multi_backend.conformance.report.scoreboard import write_scoreboard
from onnx_multi_backend.conformance.report.tally import Tally, tallies
from onnx_multi_backend.conformance.report.text import coverage_headline, coverage_text
from onnx_multi_backend.conformance.report.write import write_reports
from onnx_multi_backend.conformance.results import CaseResult, Change, PlacedNode, summarize
from onnx_multi_backend.conformance.run import Observer, Plan, run_conformance
from onnx_multi_backend.conformance.selection import Selection
from onnx_multi_backend.conformance.suite import Suite
from onnx_multi_backend.conformance.tester import BackendTester
from onnx_multi_backend.conformance.workers import TIMEOUT

__all__ = [
    "KINDS",
    "STANDARD_DEVICES",
    "TIMEOUT",
    "BackendLoadError",
    "BackendRef",
    "BackendRun",
    "BackendTester",
    "Baseline",
    "BaselineError",
    "Case",
    "CaseFacts",
    "CaseResult",
    "Change",
    "Changes",
    "Expectation",
    "ExpectationError",
    "Expectations",
    "Label",
    "LabelChange",
    "Observer",
    "Operator",
    "OperatorCoverage",
    "OperatorUse",
    "PlacedNode",
    "Plan",
    "Reason",
    "Report",
    "ReportError",
    "Selection",
    "Suite",
    "Tally",
    "Worse",
    "cause_of",
    "compare_reports",
    "coverage_headline",
    "coverage_text",
    "describe_changes",
    "draft_expectations",
    "frequent_reasons",
    "merge",
    "operator_coverage",
    "protocol_suite",
    "render_changes",
    "run_conformance",
    "summarize",
    "tallies",
    "worse",
    "write_reports",
    "write_scoreboard",
    "write_text",
]
