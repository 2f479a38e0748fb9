# SPDX-License-Identifier: Apache-2.0
"""ONNX's official conformance suite, for any backend: each case labelled, each failure expected with a reason.

It knows ONNX's backend interface and no engine. `pytest_suite` plugs it into pytest.
"""

from onnx_multi_backend.conformance.baseline import Baseline, BaselineError, Worse, worse
from onnx_multi_backend.conformance.cases import Case
from onnx_multi_backend.conformance.coverage import write_coverage
from onnx_multi_backend.conformance.expectations import Expectation, ExpectationError, Expectations, Verdict
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.results import CaseResult, Change, PlacedNode, summarize
from onnx_multi_backend.conformance.run import run_suite
from onnx_multi_backend.conformance.suite import Suite

__all__ = [
    "Baseline",
    "BaselineError",
    "Case",
    "CaseResult",
    "Change",
    "Expectation",
    "ExpectationError",
    "Expectations",
    "Label",
    "PlacedNode",
    "Suite",
    "Verdict",
    "Worse",
    "run_suite",
    "summarize",
    "worse",
    "write_coverage",
]
