# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page that needs nothing else: style, script and data are inside, no network is used."""

from __future__ import annotations

from importlib import resources
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import BackendRun, Report
from onnx_multi_backend.conformance.report.html_data import page_data
from onnx_multi_backend.conformance.results import summarize

#: The scripts in the order in which they need one another; together they are one.
_SCRIPTS = (
    "dom.js",
    "theme.js",
    "data.js",
    "coverage.js",
    "cell_states.js",
    "state.js",
    "matching.js",
    "grid.js",
    "case.js",
    "operator.js",
    "details.js",
    "filters.js",
    "main.js",
)

_MEANINGS = {
    Label.NATIVE: "passed, every node on the engine that was asked for",
    Label.ADAPTED: "passed on that engine, after the model was adapted to it",
    Label.FALLBACK: "passed, with some nodes on another execution provider",
    Label.PASS: "passed, on a backend that does not tell where the nodes ran",
    Label.UNSUPPORTED: "refused: the backend says that it cannot run the model",
    Label.XFAIL: "failed, as an expectation with a reason says it does",
    Label.SKIP: "not run, or skipped by the backend itself",
    Label.FAIL: "a wrong result, or an error that says nothing about support",
    Label.CRASH: "the process died",
    Label.TIMEOUT: "took too long and was stopped",
}


class _Summary(NamedTuple):
    """What the page says of a backend before anything is opened."""

    run: BackendRun
    counts: dict[str, int]
    passed: int
    total: int
    unexpected: int

    @property
    def percent(self) -> str:
        """Of cases that passed, rounded down: only all of them are 100 %."""
        return f"{1000 * self.passed // self.total / 10:.1f} %" if self.total else "no cases"


def render_html(report: Report) -> str:
    """Return the page, to be written as UTF-8."""
    environment = Environment(
        loader=PackageLoader(__package__, "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    page = environment.get_template("page.html.j2").render(
        report=report,
        summaries=[_summary(report, run) for run in report.backends.values()],
        meanings=_MEANINGS,
        data=page_data(report),
        source=_source,
        scripts=_SCRIPTS,
    )
    return page.encode("utf-8", "backslashreplace").decode("utf-8")  # a command line may hold what is no text


def _summary(report: Report, run: BackendRun) -> _Summary:
    results = report.of(run.name)
    counts = summarize(results)
    passed = sum(count for label, count in counts.items() if label.is_pass)
    named = {label.value: count for label, count in counts.items()}
    return _Summary(run, named, passed, len(results), sum(bool(r.unexpected) for r in results))


def _source(name: str) -> Markup:
    """Return a style sheet or a script of the page, to be put in as it is."""
    return Markup(resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8"))
