# SPDX-License-Identifier: Apache-2.0
"""The folder of files that ONNX's Backend Scoreboard (github.com/onnx/backend-scoreboard) publishes for a backend.

The scoreboard knows three outcomes, as pytest gives them: a label that is a pass is ``passed``, `skip` is ``skipped``,
and all else is ``failed``. So are `unsupported` and `xfail`: the scoreboard counts what does not pass, and there neither
an honest refusal nor a failure that was expected is a skip.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from onnx_multi_backend.conformance.case_facts import DEFAULT_DOMAIN
from onnx_multi_backend.conformance.cases import STOCK_CLASSES
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import BackendRun, Report
from onnx_multi_backend.conformance.report.files import write_text
from onnx_multi_backend.conformance.report.tables import as_csv, write_tables

logger = logging.getLogger(__name__)

#: The column of a backend in the CSV files, as the generator reads it.
#: Source: ``load_ops_csv`` in https://github.com/onnx/backend-scoreboard/blob/main/website-generator/generator.py
_COLUMN = "None"

OUTCOMES = ("failed", "passed", "skipped")


def write_scoreboard(report: Report, folder: Path, *, trend: bool = True) -> None:
    """Write ``report.json``, ``trend.json``, ``ops.json``, the CSV files and ``pip-list.json``, as the scoreboard has them.

    Dates are those of the run. An existing ``trend.json`` is extended; it stays as it is when the run was interrupted,
    for half a run is not a point of a trend. The CSV files call the backend ``None``, as ONNX's coverage report does where it is
    not told a name: the scoreboard's generator reads that column.

    Parameters
    ----------
    report : Report
    folder : Path
        With one backend the files go here, with several into a folder for each, named after it. Made if it is missing.
    trend : bool
        Whether the run is a point of the trend; a run of some cases only is not.

    Raises
    ------
    OSError
        A file cannot be read or written.
    ValueError
        The time that a backend's run started at is not in ISO 8601.
    """
    folders = dict(zip(report.backends, _folders(report.backends), strict=True))
    for name, run in report.backends.items():
        _write(report, run, folder if len(folders) == 1 else folder / folders[name], trend=trend)


def _write(report: Report, run: BackendRun, folder: Path, *, trend: bool) -> None:
    started = datetime.fromisoformat(run.environment.started)
    started = started.astimezone(UTC) if started.tzinfo else started.replace(tzinfo=UTC)
    date = started.strftime("%m/%d/%Y %H:%M:%S")
    outcomes = _outcomes(report, run.name)
    operators = _operators(report, run.name)
    summary = {
        "date": date,
        **{outcome: len(names) for outcome, names in outcomes.items()},
        "total_ops": len(operators),
        "versions": _packages(run.versions.items()),
    }
    write_text(folder / "report.json", _json({"date": date, **outcomes}))
    write_text(folder / "ops.json", _json(operators))
    if report.interrupted or not trend:
        why = "the run was interrupted" if report.interrupted else "only some cases were run"
        logger.warning("%s: %s, the trend stays as it is", folder / "trend.json", why)
    else:
        write_text(folder / "trend.json", _json(_extended(_trend(folder / "trend.json"), summary)))
    write_tables(report, folder, {run.name: _COLUMN})
    write_text(folder / "metadata.csv", as_csv([["Latest Update", started.isoformat(sep=" ")]]))
    # As `pip list --format=json` prints it.
    write_text(folder / "pip-list.json", json.dumps(_packages(run.environment.packages.items())) + "\n")


def _outcome(label: Label) -> str:
    if label.is_pass:
        return "passed"
    return "skipped" if label == Label.SKIP else "failed"


def _outcomes(report: Report, backend: str) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
    for case in report.of(backend):
        names[_outcome(case.label)].append(f"{STOCK_CLASSES[case.kind]}::{case.name}")
    return {outcome: sorted(found) for outcome, found in names.items()}


def _operators(report: Report, backend: str) -> list[dict[str, Any]]:
    """Count the cases of each operator; only main graphs are looked at, as the scoreboard does."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for case in report.of(backend):
        for use in report.models[case.name].operators:
            if use.top_level:
                key = ("" if use.domain == DEFAULT_DOMAIN else use.domain, use.op_type)
                counts.setdefault(key, dict.fromkeys(OUTCOMES, 0))[_outcome(case.label)] += 1
    return [
        {
            "domain": domain,
            "op_type": op_type,
            **{f"{outcome}_tests": count for outcome, count in found.items()},
            "total_tests": sum(found.values()),
        }
        for (domain, op_type), found in sorted(counts.items())
    ]


def _trend(path: Path) -> list[dict[str, Any]]:
    try:
        trend = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(trend, list) or not all(isinstance(summary, dict) for summary in trend):
            raise ValueError("not a list of summaries")
    except FileNotFoundError:
        return []
    except ValueError as e:
        logger.warning("%s is damaged (%s): the trend starts anew", path, e)
        return []
    return trend


def _extended(trend: list[dict[str, Any]], summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Add a summary; it takes the place of the last one when nothing changed but the date."""
    unchanged = len(trend) >= 2 and {**trend[-1], "date": summary["date"]} == summary
    return [*(trend[:-1] if unchanged else trend), summary]


def _packages(versions: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "version": version} for name, version in sorted(versions, key=lambda v: v[0].lower())]


def _json(content: Any) -> str:
    return json.dumps(content, sort_keys=True, indent=4)


def _folders(names: Iterable[str]) -> list[str]:
    """Return a name for each backend that is safe as a path's last part, and unlike the others in any letter case."""
    taken: dict[str, None] = {}
    for name in names:
        safe = plain = re.sub(r"[^\w.-]+", "_", name).strip(".") or "_"
        number = 1
        while safe.lower() in map(str.lower, taken):
            number += 1
            safe = f"{plain}-{number}"
        taken[safe] = None
    return list(taken)
