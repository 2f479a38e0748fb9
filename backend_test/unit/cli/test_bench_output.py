# SPDX-License-Identifier: Apache-2.0
"""What is printed of a report."""

from __future__ import annotations

import io
import sys

import pytest

from backend_test.unit.tuning import made
from onnx_multi_backend.cli import console
from onnx_multi_backend.cli.bench_output import bar, show
from onnx_multi_backend.tuning.comparing import compare
from onnx_multi_backend.tuning.differences import Difference
from onnx_multi_backend.tuning.measurement import Outcome


class _Terminal(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def test_bench(capsys: pytest.CaptureFixture[str]) -> None:
    show(made.bench())
    out = capsys.readouterr().out
    assert out.startswith("Fastest: Openvino\n")
    assert "times as fast as the defaults of OrtCpu" in out
    assert "failed: OrtOpenvinoInt8: Openvino cannot run the model" in out
    assert "note: The inputs were drawn at random" in out
    assert "█" not in out


def test_equals(capsys: pytest.CaptureFixture[str]) -> None:
    show(made.report([made.measured("A", seed=1), made.measured("B", seed=2)]))
    assert "No significant winner between " in capsys.readouterr().out


def test_a_long_search_fits_on_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    show(made.tune(60))
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 40
    assert "--preset Openvino --option num_threads=4 --option performance_hint=LATENCY" in out
    assert "and 50 more; 60 in all: " in out
    assert "more that failed" in out


def test_what_a_looser_limit_gains(capsys: pytest.CaptureFixture[str]) -> None:
    bf16 = made.measured(
        "bf16", 0.0045, outcome=Outcome.NOT_ALLOWED, float32=False, options={"a": 1}, difference=Difference(0.01, 0.01, 0.9998)
    )  # fmt: skip
    slow = made.measured("slow", 0.02, outcome=Outcome.NOT_ALLOWED, float32=False, options={"a": 2})
    show(made.report([made.measured("A", 0.01), bf16, slow], chosen="A"))
    out = capsys.readouterr().out
    assert "with a looser limit: bf16 would take 0.45" in out
    assert "largest error 0.01, cosine 0.999800: --min-cosine 0.999 allows it" in out
    assert "with a looser limit: slow" not in out


def test_nothing_runs(capsys: pytest.CaptureFixture[str]) -> None:
    show(made.report([made.failed(f"m{i}", "no\nway") for i in range(12)]))
    out = capsys.readouterr().out
    assert out.startswith("None of 12 configurations gives a usable result")
    assert "failed: m0: no way" in out
    assert "and 4 more that failed" in out


def test_a_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    new = made.bench()
    show(new, compare(made.changed(new, "OrtCpu", latency=made.rounds(0.008)), new))
    out = capsys.readouterr().out
    assert "1 slower, 4 same" in out
    assert "slower: OrtCpu: 8." in out


def test_a_terminal_shows_bars_and_cuts_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "dumb")
    assert console.on_terminal()
    show(made.bench())
    lines = screen.getvalue().splitlines()
    assert any("█" * 10 in line for line in lines)
    assert max(map(len, lines)) <= 120
    assert sum("failed:" in line for line in lines) == 1


def test_control_characters_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    show(made.report([made.measured("A\x1b[31m\udc80"), made.failed("B", "\x1b]0;x\x07")]))
    assert "\x1b" not in capsys.readouterr().out


def test_bars_grow() -> None:
    bars = [bar(share) for share in (0.0, 0.1, 0.5, 1.0, 7.0)]
    assert [len(found) for found in bars] == [1, 1, 5, 10, 10]
    assert bar(float("nan"))
