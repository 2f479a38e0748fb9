# SPDX-License-Identifier: Apache-2.0
"""What is flagged between two reports, and what is noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from backend_test.unit.tuning import made
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.tuning.comparing import Comparison, Row, Verdict, compare
from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.report import read_report


def one(old: Any, new: Any, **settings: Any) -> Row:
    return both(old, new, **settings).rows[0]


def both(old: Any, new: Any, *, tolerance: float = 0.05, **others: Any) -> Comparison:
    return compare(made.report([old], **others), made.report([new], **others), tolerance=tolerance)


@pytest.mark.parametrize(
    ("times", "verdict"),
    [(1.3, Verdict.SLOWER), (1.0, Verdict.SAME), (1.03, Verdict.SAME), (0.7, Verdict.FASTER)],
)
def test_times(times: float, verdict: Verdict) -> None:
    row = one(made.measured("A", 0.01, seed=1), made.measured("A", 0.01 * times, seed=2))
    assert row.verdict is verdict
    assert row.ratio is not None
    assert row.ratio.median == pytest.approx(times, rel=0.03)
    assert row.ratio.low < row.ratio.median < row.ratio.high
    assert row.confidence is not None
    assert 0 <= row.confidence <= 1
    assert (row.confidence > 0.99) == (times >= 1.03)


def test_noise_alone_is_seldom_flagged() -> None:
    flagged = 0
    for seed in range(100):
        old, new = (made.measured("A", 0.01, seed=2 * seed + i, noise=0.05) for i in range(2))
        flagged += both(old, new).regressed
    assert flagged <= 3


def test_within_a_tolerance_nothing_is_flagged() -> None:
    old, new = made.measured("A", 0.01, seed=1), made.measured("A", 0.013, seed=2)
    assert both(old, new).regressed
    assert not both(old, new, tolerance=0.5).regressed


def test_few_rounds_say_nothing() -> None:
    row = one(made.measured("A", 0.01, count=3), made.measured("A", 0.03, count=3))
    assert row.verdict is Verdict.UNKNOWN
    assert row.confidence is None
    assert row.ratio is not None
    assert row.ratio.median == pytest.approx(3, rel=0.1)
    assert row.ratio.low == 0


def test_fewer_runs_a_second_are_slower() -> None:
    generator = np.random.default_rng(0)
    rates = [tuple(map(float, level * (1 + 0.01 * generator.standard_normal(10)))) for level in (100, 80)]
    old, new = (made.measured("A", throughput=rate) for rate in rates)
    row = one(old, new, objective="throughput")
    assert row.verdict is Verdict.SLOWER
    assert row.ratio is not None
    assert row.ratio.median == pytest.approx(1.25, rel=0.02)
    assert one(new, old, objective="throughput").verdict is Verdict.FASTER


@pytest.mark.parametrize(("memory", "verdict"), [(1100, Verdict.SLOWER), (1040, Verdict.SAME), (900, Verdict.FASTER)])
def test_memory(memory: int, verdict: Verdict) -> None:
    row = one(made.measured("A", memory=1000), made.measured("A", memory=memory), objective="memory")
    assert row.verdict is verdict
    assert row.confidence is None


@pytest.mark.parametrize(
    ("before", "after", "verdict", "regressed"),
    [
        (Outcome.MEASURED, Outcome.FAILED, Verdict.FAILS_NOW, True),
        (Outcome.MEASURED, Outcome.INACCURATE, Verdict.INACCURATE_NOW, True),
        (Outcome.FAILED, Outcome.MEASURED, Verdict.RUNS_NOW, False),
        (Outcome.INACCURATE, Outcome.MEASURED, Verdict.ACCURATE_NOW, False),
        (Outcome.FAILED, Outcome.FAILED, Verdict.SAME, False),
        (Outcome.MEASURED, Outcome.NOT_BETTER, Verdict.SAME, False),
    ],
)
def test_outcomes(before: Outcome, after: Outcome, verdict: Verdict, *, regressed: bool) -> None:
    found = both(made.measured("A", outcome=before), made.measured("A", outcome=after))
    assert found.rows[0].verdict is verdict
    assert found.regressed is regressed


def test_configurations_are_told_by_setup_and_model() -> None:
    old = made.report(
        [made.measured("A"), made.measured("A int8", model="int8 (ort)"), made.measured("old", options={"a": 1})]
    )
    new = made.report([made.measured("A, renamed"), made.measured("new", options={"a": 2})])
    found = compare(old, new)
    assert {(row.name, row.verdict) for row in found.rows} == {
        ("A, renamed", Verdict.SAME),
        ("new", Verdict.APPEARED),
        ("A int8", Verdict.DISAPPEARED),
        ("old", Verdict.DISAPPEARED),
    }
    assert found.regressed  # an engine that is gone is no less a loss than one that fails
    assert not replace(found, kind="tune").regressed


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"machine": replace(made.MACHINE, processor="Intel")}, "processor"),
        ({"machine": replace(made.MACHINE, cpus=2)}, "number of CPUs: 4 in the old one, 2 in the new one"),
        ({"model_digest": "cd"}, "digest"),
        ({"inputs": {"x": "float32 [2, 3, 224, 224]"}}, "inputs"),
        ({"objective": "memory"}, "objective"),
    ],
)
def test_what_cannot_be_compared_is_refused(others: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words) as error:
        compare(made.report([made.measured("A")]), made.report([made.measured("A")], **others))
    assert "measure the old one again here" in str(error.value)


@pytest.mark.parametrize("tolerance", [-0.1, 1.0, float("nan"), "0.1", True])
def test_a_tolerance_that_is_none_is_refused(tolerance: Any) -> None:
    with pytest.raises(OptionError, match="tolerance"):
        compare(made.bench(), made.bench(), tolerance=tolerance)


def test_other_packages_are_listed() -> None:
    old = made.report([made.measured("A")], machine=replace(made.MACHINE, packages={"onnx": "1.22.0", "nncf": "3.4"}))
    changes = compare(old, made.report([made.measured("A")])).changes
    assert ("onnx", "1.22.0", "1.23.0") in changes
    assert ("nncf", "3.4", "none") in changes
    assert ("openvino", "none", "2026.4.0") in changes


@pytest.mark.parametrize("report", [made.bench(), made.tune(60)], ids=["bench", "tune"])
def test_a_report_that_was_saved_is_as_it_was(report: made.Report) -> None:
    found = compare(read_report(report.to_json(), "old.json"), report)
    assert {row.verdict for row in found.rows} == {Verdict.SAME}
    assert len(found.rows) == len(report.measurements)
