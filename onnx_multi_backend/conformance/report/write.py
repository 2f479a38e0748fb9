# SPDX-License-Identifier: Apache-2.0
"""All the files of a report, in one folder."""

from __future__ import annotations

import json
from pathlib import Path

from onnx_multi_backend.conformance.report.changes import Changes, render_changes
from onnx_multi_backend.conformance.report.coverage import coverage_of_all
from onnx_multi_backend.conformance.report.document import FILE_NAME, Report
from onnx_multi_backend.conformance.report.files import write_text
from onnx_multi_backend.conformance.report.html import render_html
from onnx_multi_backend.conformance.report.junit import render_junit
from onnx_multi_backend.conformance.report.markdown import render_markdown
from onnx_multi_backend.conformance.report.tables import write_tables


def write_reports(report: Report, folder: Path, changes: Changes | None = None, against: str = "") -> None:
    """Write a report in every form: JSON, a page, Markdown, JUnit XML, and ONNX's own tables.

    Parameters
    ----------
    report : Report
    folder : Path
        Is made if it does not exist; files of an earlier report in it are replaced.
    changes : Changes, optional
        What changed since an earlier report, for the summary and the page.
    against : str
        What that report is called.

    Raises
    ------
    OSError
        A file cannot be written.
    """
    report.write(folder / FILE_NAME)  # first: the others can be made from it again
    write_text(folder / "index.html", render_html(report, changes, against))
    summary = render_changes(changes, against) if changes else ""
    write_text(folder / "summary.md", render_markdown(report, summary))
    write_text(folder / "junit.xml", render_junit(report))
    write_text(folder / "operators.json", json.dumps(coverage_of_all(report), indent=1) + "\n")
    write_tables(report, folder)
