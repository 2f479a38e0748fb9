# SPDX-License-Identifier: Apache-2.0
"""A report as JUnit XML, the form that CI systems read: a suite for each backend, its cases named as ONNX names them."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from onnx_multi_backend.conformance.cases import STOCK_CLASSES
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import BackendRun, Report
from onnx_multi_backend.conformance.results import CaseResult

# Characters outside XML 1.0's Char production (section 2.2): a file with one of them is not well-formed.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

# Which element a label has; a pass has none.
_ELEMENTS = {
    Label.UNSUPPORTED: "skipped",
    Label.XFAIL: "skipped",
    Label.SKIP: "skipped",
    Label.FAIL: "failure",
    Label.CRASH: "error",
    Label.TIMEOUT: "error",
}


def render_junit(report: Report) -> str:
    """Return the report as JUnit XML, to be written as UTF-8.

    A pass has no element of its own; `unsupported`, `xfail` and `skip` are ``skipped``, `fail` is a ``failure``,
    `crash` and `timeout` are an ``error``. A result that is not as expected is a ``failure`` even if its label says
    nothing bad, as with an unexpected pass. Problems of the expectations are a failing case ``expectations``.
    Times are in seconds.
    """
    root = ET.Element("testsuites", name="ONNX conformance")
    for run in report.backends.values():
        root.append(_suite(run, report))
    _total(root, list(root))
    ET.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _suite(run: BackendRun, report: Report) -> ET.Element:
    suite = ET.Element("testsuite", name=_clean(run.name))
    environment = run.environment
    properties = {
        **run.versions,
        "engine": run.engine,
        "devices": ", ".join(run.devices),
        "python": environment.python,
        "platform": environment.platform,
        "cpu": environment.hardware,
        "cores": str(environment.cores),
        "interrupted": str(report.interrupted).lower(),
    }
    suite.append(_properties(properties))
    results = report.of(run.name)
    suite.extend(map(_case, results))
    if run.problems:
        case = ET.SubElement(suite, "testcase", classname=_clean(run.name), name="expectations", time=_seconds(0))
        _outcome(case, "failure", "expectations", run.problems[0], "\n".join(run.problems))
    found = suite.findall("testcase")
    suite.set("tests", str(len(found)))
    for plural, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(plural, str(sum(case.find(element) is not None for case in found)))
    suite.set("time", _seconds(sum(r.duration_ms for r in results)))
    suite.set("timestamp", _clean(environment.started))
    return suite


def _case(result: CaseResult) -> ET.Element:
    case = ET.Element(
        "testcase",
        classname=_clean(f"{result.backend}.{STOCK_CLASSES[result.kind]}"),
        name=_clean(result.name),
        time=_seconds(result.duration_ms),
    )
    adaptations = {f"adaptation {i}": f"{c.pass_name}: {c.change}" for i, c in enumerate(result.adaptations, 1)}
    case.append(_properties({"label": result.label.value, **adaptations}))
    element = _ELEMENTS.get(result.label)
    detail = result.error or result.reason
    if result.unexpected and not result.label.is_failure:
        _outcome(case, "failure", result.label, result.unexpected, detail)
    elif element == "skipped":
        _outcome(case, element, result.label, result.reason, result.error)
    elif element:
        _outcome(case, element, result.label, result.headline, detail)
    return case


def _outcome(case: ET.Element, element: str, kind: str, message: str, detail: str) -> None:
    ET.SubElement(case, element, message=_clean(message), type=str(kind)).text = _clean(detail)


def _properties(values: dict[str, str]) -> ET.Element:
    properties = ET.Element("properties")
    for name, value in values.items():
        ET.SubElement(properties, "property", name=_clean(name), value=_clean(value))
    return properties


def _total(root: ET.Element, suites: list[ET.Element]) -> None:
    for counted in ("tests", "failures", "errors", "skipped"):
        root.set(counted, str(sum(int(suite.get(counted, "0")) for suite in suites)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in suites):.3f}")


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.6f}"


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("", text)
