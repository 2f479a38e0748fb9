# SPDX-License-Identifier: Apache-2.0
"""The page of a report: what stands in it, whatever was measured."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from backend_test.unit.tuning import made
from onnx_multi_backend.measuring.figures import power_tick, seconds_text
from onnx_multi_backend.tuning import summary
from onnx_multi_backend.tuning.comparing import compare
from onnx_multi_backend.tuning.differences import Difference, Limits
from onnx_multi_backend.tuning.measurement import Outcome
from onnx_multi_backend.tuning.objectives import OBJECTIVES
from onnx_multi_backend.tuning.page import render
from onnx_multi_backend.tuning.plots.front import pareto_front
from onnx_multi_backend.tuning.plots.scales import Scale, logarithmic

HOSTILE = "</td><script>alert(1)</script> & <b>{{ 7 * 7 }} \udc80 'end' \""


def plot(page: str, name: str) -> str:
    """One plot, as wide screens see it; empty where there is none."""
    found = re.search(rf'<svg class="plot wide"[^>]*aria-labelledby="{name}-wide-title".*?</svg>', page, re.DOTALL)
    return found[0] if found else ""


def test_the_result_stands_first_with_what_it_gains() -> None:
    page = render(made.tune())
    assert page.index("Chosen: Openvino, 4 threads, LATENCY") < page.index("Configurations</h2>")
    assert "times as fast as the defaults of OrtCpu (" in page
    assert "times as fast as the defaults of Openvino, the best of the presets&#39; defaults (" in page
    assert "--preset Openvino --option num_threads=4 --option performance_hint=LATENCY" in page
    assert "&#34;performance_hint&#34;: &#34;LATENCY&#34;" in page


def test_no_winner_is_named_within_noise() -> None:
    same = made.rounds(0.01, seed=1), made.rounds(0.01, seed=2)
    page = render(made.report([made.measured("A", latency=same[0]), made.measured("B", latency=same[1])]))
    assert "No significant winner between" in page
    page = render(made.report([made.measured("A", 0.01), made.measured("B", 0.02)]))
    assert "No significant winner" not in page
    assert "Fastest: A" in page


def test_names_with_commas_are_told_apart() -> None:
    names = ["A", "A, 1 thread", "A, 1 thread, bf16"]
    equal = [made.measured(name, latency=made.rounds(0.01, seed=seed)) for seed, name in enumerate(names)]
    words = summary.no_winner(made.report(equal, chosen="A"))
    assert words.startswith("No significant winner between A; A, 1 thread; and A, 1 thread, bf16: ")
    two = summary.no_winner(made.report([replace(m, name=m.name[-4:]) for m in equal[1:]], chosen="read"))
    assert two.startswith("No significant winner between read and bf16: ")


def test_a_single_configuration_is_no_winner() -> None:
    assert "Measured: A" in render(made.report([made.measured("A")]))


def test_notices() -> None:
    noisy = made.report([made.measured("A", noise=0.6)], random=True, reference="", notes=("a <note>",))
    page = render(noisy)
    for words in ("drawn at random (", "too noisy", "no reference", "a &lt;note&gt;"):
        assert words in page


def test_a_tie_that_noise_alone_makes_says_so() -> None:
    quiet, wild = made.measured("A"), made.measured("B", noise=0.6, seed=3)
    (notice,) = summary.notices(made.report([quiet, wild], chosen="A"))
    assert notice.startswith("Times of B differ by ")
    assert "it cannot be told whether it is slower" in notice
    assert summary.notices(made.report([quiet, made.measured("B", seed=2)], chosen="A")) == []


@pytest.mark.parametrize("report", [made.bench(), made.tune(60)], ids=["bench", "tune"])
def test_it_needs_nothing_else(report: made.Report) -> None:
    page = render(report, compare(report, report))
    assert "default-src 'none'; style-src 'unsafe-inline'; img-src data:" in page
    assert not re.findall(
        r"<script|<link(?! rel=\"icon\" href=\"data:,\")|https?://|@import|url\(|\son\w+=|\bsrc=", page
    )


def test_names_are_text() -> None:
    report = made.report(
        [made.measured(HOSTILE, options={"x": HOSTILE[:30]}), made.failed(f"{HOSTILE} 2", HOSTILE)],
        model=HOSTILE,
        notes=(HOSTILE,),
        inputs={HOSTILE: "float32"},
    )
    page = render(report)
    assert page.encode("utf-8")
    assert "<script" not in page
    assert "<b>" not in page
    assert "{{ 7 * 7 }}" in page
    assert r"\udc80" in page


def test_each_configuration_has_its_marks() -> None:
    report = made.tune(60)
    page = render(report)
    timed = [m for m in report.measurements if m.latency]
    assert plot(page, "latency").count('class="spread ') == len(timed)
    assert plot(page, "errors").count('class="mark ') == len(timed)
    search = plot(page, "progress")
    assert search.count('class="mark ') == 60
    for outcome in Outcome:
        count = sum(m.outcome is outcome for m in report.measurements)
        assert search.count(f'class="mark {outcome.replace(" ", "-")}"') == count > 0
    assert search.count('class="so-far"') == 1
    assert search.count('class="ring"') == 1
    assert page.count('scope="row"') == 60


def test_plots_and_table_are_ordered_as_the_ranking() -> None:
    report = made.bench()
    page = render(report)
    names = [m.name for m in report.ranked]
    assert re.findall(r'<th scope="row" class="name">(\w+)', page) == names
    assert re.findall(r'class="label(?: strong)?">(\w+)</text>', plot(page, "latency")) == names[:-1]


def test_bench_has_no_search() -> None:
    assert plot(render(made.bench()), "progress") == ""


def test_a_failure_has_its_reason_folded() -> None:
    page = render(made.bench())
    assert "a body that it refuses" in page
    assert "<pre>Openvino cannot run the model" in page


@pytest.mark.parametrize("kind", ["none", "all failed", "one", "one without errors"])
def test_few_measurements(kind: str) -> None:
    report = {
        "none": made.report([]),
        "all failed": made.report([made.failed("A", "no"), made.failed("B", "")]),
        "one": made.report([made.measured("A", count=1)]),
        "one without errors": made.report([made.measured("A", difference=None, memory=None, placement=None)]),
    }[kind]
    page = render(report)
    assert ("None of 2 configurations gives a usable result" in page) == (kind == "all failed")
    assert bool(plot(page, "latency")) == kind.startswith("one")
    assert bool(plot(page, "errors")) == (kind == "one")
    assert "nan" not in page.lower().replace("nanosecond", "")


def test_errors_of_zero_and_errors_that_are_none_have_a_place() -> None:
    odd = [
        Difference(0.0),
        Difference(math.inf, math.inf, -1.0),
        Difference(math.nan, math.nan, math.nan),
        Difference(1e-4),
    ]
    report = made.report(
        [made.measured(f"m{i}", 0.01 + i / 1000, difference=d) for i, d in enumerate(odd)],
        limits=Limits(max_error=1e-3),
    )
    page = render(report)
    drawn = plot(page, "errors")
    assert drawn.count('class="mark ') == 4
    assert drawn.count('class="band"') == 2
    assert 'class="limit"' in drawn
    assert page.count(">not finite</td>") == 2
    assert not re.search(r"(?<![a-z])(nan|inf)(?![a-z])", drawn)


@pytest.mark.parametrize("objective", ["throughput", "memory"])
def test_other_objectives_rank_by_their_figures(objective: str) -> None:
    report = made.report(
        [
            made.measured("A", throughput=(100.0,) * 8, memory=300 * 2**20),
            made.measured("B", throughput=(200.0,) * 8, memory=100 * 2**20),
        ],
        objective=objective,
    )
    page = render(report)
    assert re.findall(r'<th scope="row" class="name">(\w)', page) == ["B", "A"]
    assert {"throughput": "200 runs/s", "memory": "100.0 MiB"}[objective] in page
    assert {"throughput": "2.00 times as fast", "memory": "1/3.00 of the memory"}[
        objective
    ] in page or "defaults" in page
    assert OBJECTIVES[objective].axis in plot(page, "errors")


def test_a_comparison_is_shown() -> None:
    new = made.bench()
    old = made.changed(new, "OrtCpu", latency=made.rounds(0.008, seed=9))
    page = render(new, compare(old, new))
    assert "1 slower, 4 same" in page
    assert 'class="tag alert">slower' in page
    assert "Comparison</h2>" not in render(new)


def test_the_front_holds_what_no_other_beats() -> None:
    kinds = [(1, 1e-1), (2, 1e-2), (3, 1e-1), (4, 0.0), (5, 0.0), (6, math.nan)]
    found = [made.measured(f"m{t}", t / 100, difference=Difference(e)) for t, e in kinds]
    assert [m.name for m in pareto_front(found, OBJECTIVES["latency"])] == ["m1", "m2", "m4"]


@pytest.mark.parametrize(("low", "high"), [(1e-3, 1.04e-3), (1e-3, 2e-3), (1e-6, 10.0), (1e-90, 1e90), (4.9, 5.1)])
def test_scales_have_some_round_ticks(low: float, high: float) -> None:
    scale = logarithmic([low, high], 0, 100)
    assert 0 < scale(low) < scale(high) < 100
    ticks = scale.ticks(9)
    assert 2 <= len(ticks) <= 9
    assert all(scale.low <= tick <= scale.high for tick in ticks)
    assert len(Scale(0, 137.0, 0, 100, logarithmic=False).ticks(5)) in (3, 4, 5)


def test_ticks_are_told_apart() -> None:
    ticks = [power_tick(tick) for tick in logarithmic([6.05e-7], 0, 100).ticks(7)]
    assert len(set(ticks)) == len(ticks) >= 3
    assert power_tick(1e-5) == "10⁻⁵"
    assert power_tick(2e3) == "2·10³"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.001234, "1.23 ms"), (0.0009999, "1.00 ms"), (0.9996, "1.00 s"), (2.5e-7, "250 ns"), (59.94, "59.9 s"), (1234, "21 min"), (0, "0 s"), (None, "-"), (math.nan, "-")],
)  # fmt: skip
def test_seconds_have_a_unit_and_three_digits(seconds: float | None, words: str) -> None:
    assert seconds_text(seconds) == words


def test_figures_beyond_all_reason_have_a_place() -> None:
    scale = logarithmic([1e-300, 1e300], 0, 100)
    assert 0 <= scale(1e-300) < scale(1.0) < scale(1e300) <= 100
    assert len(scale.ticks(9)) >= 3


def test_equal_values_have_a_scale() -> None:
    scale = logarithmic([0.01, 0.01, math.nan, 0.0], 0, 100)
    assert scale(0.01) == pytest.approx(50)


def test_the_round_trip_through_json_shows_the_same() -> None:
    from onnx_multi_backend.tuning.report import read_report

    report = replace(made.tune(), notes=("n",))
    assert render(read_report(report.to_json(), "r.json")) == render(report)
