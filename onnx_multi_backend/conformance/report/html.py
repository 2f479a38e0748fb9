# SPDX-License-Identifier: Apache-2.0
"""The report as one HTML page that needs nothing else: style, script and data are inside, no network is used."""

from __future__ import annotations

import shlex
from importlib import resources

from markupsafe import Markup

from onnx_multi_backend import page_style
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.changes import Changes
from onnx_multi_backend.conformance.report.coverage import operator_coverage
from onnx_multi_backend.conformance.report.document import Report
from onnx_multi_backend.conformance.report.html_data import page_data
from onnx_multi_backend.conformance.report.reasons import frequent_reasons
from onnx_multi_backend.conformance.report.tally import tallies

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
    "changes.js",
    "filters.js",
    "main.js",
)


def render_html(report: Report, changes: Changes | None = None, against: str = "") -> str:
    """Return the page, to be written as UTF-8.

    Parameters
    ----------
    report : Report
    changes : Changes, optional
        What changed since an earlier report; the page has a section about it.
    against : str
        What that report is called.
    """
    environment = page_style.environment(__package__, "page")
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    environment.filters["shell"] = shlex.join
    figures = [
        (t, operator_coverage(report, t.run.name).values(), frequent_reasons(t.results)) for t in tallies(report)
    ]
    page = environment.get_template("page.html.j2").render(
        report=report,
        figures=figures,
        changes=changes,
        against=against,
        labels=list(Label),
        data=page_data(report, changes),
        base=page_style.base(),
        source=_source,
        scripts=_SCRIPTS,
    )
    return page.encode("utf-8", "backslashreplace").decode("utf-8")  # a command line may hold what is not text


def _source(name: str) -> Markup:
    """Return a style sheet or a script of the page, to be put in as it is."""
    return Markup(resources.files(__package__).joinpath("page", name).read_text(encoding="utf-8"))
