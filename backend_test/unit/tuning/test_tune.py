# SPDX-License-Identifier: Apache-2.0
"""`tune` and `bench` on real engines, and on one that crashes, hangs and lies."""

from __future__ import annotations

import math
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.calibration import nets
from onnx_multi_backend.host.surroundings import surroundings
from onnx_multi_backend.presets.ort_cpu import OrtCpuBackend
from onnx_multi_backend.tuning import Outcome, contest, read_report
from onnx_multi_backend.tuning.differences import FLOAT32_NOISE

ODD = '''
import os, signal, time
import numpy as np
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.presets.knobs import Choice, Knob
from onnx_multi_backend.presets.options import Option, one_of
from onnx_multi_backend.presets.ort_cpu import OrtCpuBackend

WAYS = ("none", "crash", "hang", "raise", "no cache", "crash when dropped")

class Crash:
    def __del__(self):
        os._exit(7)

class OddBackend(OrtCpuBackend):
    """ONNX Runtime, but for what ``way`` makes it do."""

    name = "Odd"
    options = (*OrtCpuBackend.options, Option("way", one_of(*WAYS), "none", positional=False))

    @classmethod
    def make_target(cls, settings, device, loaded):
        if loaded is not None and settings["way"] == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if loaded is not None and settings["way"] == "hang":
            time.sleep(3600)
        if loaded is not None and settings["way"] == "raise":
            raise RuntimeError("the engine says no")
        if settings["way"] == "no cache" and settings["cache_dir"]:
            raise OptionError("nothing can be kept")
        return super().make_target(settings, device, loaded)

    @classmethod
    def prepare(cls, model, device=None, **options):
        prepared = super().prepare(model, device, **options)
        if options.get("way") == "crash when dropped":
            prepared.crash = Crash()
        return prepared

    @classmethod
    def knobs(cls, host):
        if os.environ.get("ODD_KNOBS") == "raise":
            raise ValueError("no knobs today")
        illegal = Choice("illegal", {"way": {1, 2}})
        return (Knob("way", (*(Choice(way, {"way": way}) for way in WAYS[1:4]), Choice(WAYS[5], {"way": WAYS[5]}), illegal)),)
'''


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ort_cpu: type[omb.Preset]) -> str:
    """A preset from another package."""
    info = tmp_path / "odd_preset-1.dist-info"
    info.mkdir()
    (tmp_path / "odd_preset.py").write_text(ODD)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-preset\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[onnx_multi_backend.presets]\nOdd = odd_preset:OddBackend\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "odd_preset", raising=False)
    return "Odd"


@pytest.fixture(autouse=True)
def small_space(short_turns: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is compared here are words, not times: turns are short and few, and the space is small."""
    monkeypatch.setattr(contest, "_PROCESSES", 2)  # the first, and one more
    monkeypatch.setattr(contest, "_LEAST", 6)
    monkeypatch.setattr(contest, "_MOST", 12)
    knobs = OrtCpuBackend.knobs.__func__
    monkeypatch.setattr(OrtCpuBackend, "knobs", classmethod(lambda cls, host: knobs(cls, host)[:2]))


def small() -> Any:
    return nets.convolutional(channels=8, layers=2)


X = next(nets.images(1))
#: Where it is not about what another process does: starting one costs more than all that it is asked.
HERE = {"presets": ["OrtCpu"], "budget_s": 60, "processes": False}


@pytest.mark.parametrize("objective", ["latency", "throughput", "memory"])
def test_the_setup_prepares_the_model_and_its_results_are_right(
    objective: str, ort_cpu: type[omb.Preset], tmp_path: Path
) -> None:
    model = small()
    tuned = omb.tune(model, X, objective=objective, **HERE | {"processes": objective == "memory"})
    report = tuned.report
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = omb.prepare(model, setup=tuned.setup).run(X)
    np.testing.assert_allclose(results[0], ort_cpu.prepare(model).run(X)[0], rtol=1e-4, atol=1e-5)
    best = report.best
    assert best is not None and best.setup == tuned.setup and best.float32
    assert best.difference is not None and best.difference.relative < FLOAT32_NOISE
    assert not report.random and report.examples == 1
    assert read_report(report.to_json(), "it").to_json() == report.to_json()
    if objective == "memory":
        assert best.memory is not None and best.memory > 1e7
    if objective == "throughput":
        assert best.per_second > 0


def test_what_crashes_or_hangs_costs_itself_alone(odd: str) -> None:
    tuned = omb.tune(small(), X, presets=[odd, "OrtCpu"], budget_s=60)
    rows = {m.name: m for m in tuned.report.measurements}
    assert rows["Odd, crash"].outcome is Outcome.FAILED and "SIGSEGV" in rows["Odd, crash"].reason
    assert rows["Odd, hang"].outcome is Outcome.FAILED and "more than" in rows["Odd, hang"].reason
    assert rows["Odd"].median > 0 and rows["OrtCpu"].median > 0
    assert "RuntimeError: the engine says no" in rows["Odd, raise"].reason
    assert "Odd, crash when dropped" in rows and "Odd, illegal" not in rows
    assert len(rows["Odd"].rounds) > 9 or len(rows["OrtCpu"].rounds) > 9  # the search went on to its end


def test_random_inputs_are_told_and_several(ort_cpu: type[omb.Preset]) -> None:
    report = omb.tune(small(), shapes={"x": (1, 3, 16, 16)}, **HERE).report
    assert report.random and report.examples == 3
    assert report.inputs == {"x": "float32 [1, 3, 16, 16]"}


def test_data_is_compared_on_and_int8_is_told_but_not_chosen(ort_cpu: type[omb.Preset]) -> None:
    tuned = omb.tune(nets.convolutional(), data=nets.images(6), **HERE)
    assert tuned.int8 is None and tuned.report.examples == 6
    int8 = [m for m in tuned.report.measurements if m.model == "int8 (ort)"]
    assert int8 and {m.outcome for m in int8} <= {Outcome.NOT_ALLOWED, Outcome.NOT_BETTER}
    assert not int8[0].float32


def test_int8_is_chosen_where_a_limit_allows_it_and_it_is_the_fastest(
    ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    from onnx_multi_backend.tuning.contest import Contest
    from onnx_multi_backend.tuning.trial import Trial

    # Which is faster depends on the machine: here int8 is.
    def factor(trial: Trial) -> float:
        return 1e-3 if trial.candidate.model != "as given" else 1

    score, figures = Contest.score, Contest.figures
    monkeypatch.setattr(Contest, "score", lambda self, trial: score(self, trial) * factor(trial))
    monkeypatch.setattr(
        Contest, "figures", lambda self, trial: [figure * factor(trial) for figure in figures(self, trial)]
    )
    monkeypatch.setattr("onnx_multi_backend.tuning.search._CLEARLY_SLOWER", math.inf)
    tuned = omb.tune(nets.convolutional(), data=nets.images(6), min_cosine=0.9, **HERE)
    assert tuned.int8 is not None
    assert any(node.op_type == "QuantizeLinear" for node in tuned.int8.graph.node)
    x = next(nets.images(1))
    expected = ort_cpu.prepare(nets.convolutional()).run(x)[0]
    found = omb.prepare(tuned.int8, setup=tuned.setup).run(x)[0]
    assert np.dot(expected.ravel(), found.ravel()) / np.linalg.norm(expected) / np.linalg.norm(found) > 0.9


def test_fixed_shapes_are_chosen_only_where_they_are_allowed(ort_cpu: type[omb.Preset]) -> None:
    report = omb.tune(small(), X, **HERE).report
    fixed = [m for m in report.measurements if "fixed shapes" in m.name]
    assert fixed and all(m.outcome is not Outcome.MEASURED for m in fixed)
    assert all("input_shapes" not in m.setup.options for m in report.measurements if m not in fixed)


def test_a_model_that_draws_at_random_has_no_reference(ort_cpu: type[omb.Preset]) -> None:
    model = models.one_node("RandomNormalLike", [models.tensor("x", [2, 3])], [models.tensor("y", [2, 3])])
    report = omb.bench(model, presets=["OrtCpu"], seconds=0.2)
    assert report.reference == "" and "differ from run to run" in report.notes[0]


def test_without_ort_cpu_onnx_is_the_reference(ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    from onnx_multi_backend.presets.setup import Setup
    from onnx_multi_backend.tuning import reference
    from onnx_multi_backend.tuning.candidate import Candidate

    monkeypatch.setattr(reference, "_PLAIN", Candidate(Setup("OrtCuda", "CUDA:77")))
    report = omb.bench(models.relu([2, 3]), presets=["OrtCpu"], seconds=0.2)
    assert report.reference == "ONNX's reference evaluator"
    assert report.measurements[0].difference is not None and report.measurements[0].difference.largest == 0


def test_presets_are_a_list(ort_cpu: type[omb.Preset]) -> None:
    for call in (omb.bench, omb.tune):
        with pytest.raises(
            omb.OptionTypeError, match=r"presets is a list of names; 'OrtCpu' was given\. Write \['OrtCpu'\]"
        ):
            call(models.relu([2, 3]), presets="OrtCpu")


def test_bench_has_a_row_for_each_preset_and_measures_all_of_it(engine: type[omb.Preset]) -> None:
    report = omb.bench(nets.convolutional(), X, presets=[engine.name, "OrtCuda"], seconds=1)
    ran, failed = report.measurements
    assert ran.name == engine.name and ran.outcome is Outcome.MEASURED
    assert ran.prepare is not None and ran.first_run is not None and ran.memory is not None
    assert ran.prepare_cached is not None
    assert ran.placement is not None and ran.placement.elsewhere == 0
    assert ran.difference is not None and ran.difference.relative < 1e-4
    assert ran.rounds and ran.per_second > 0  # how many there are is a matter of how busy the machine is
    assert ran.quantile(0.5) <= ran.quantile(0.9) <= ran.quantile(0.99)
    if not omb.availability()["OrtCuda"].usable:
        assert failed.outcome is Outcome.FAILED and failed.reason


def test_the_threads_of_bench_are_those_asked_for(engine: type[omb.Preset]) -> None:
    (row,) = omb.bench(small(), X, presets=[engine.name], seconds=0.2, threads=1).measurements
    assert row.name == f"{engine.name}, 1 thread"


def test_setups_are_benched_too(ort_cpu: type[omb.Preset]) -> None:
    slow = omb.Setup("OrtCpu", None, {"session_options": {"graph_optimization_level": "ORT_DISABLE_ALL"}})
    report = omb.bench(small(), X, presets=["OrtCpu", slow], seconds=0.2)
    assert [m.setup for m in report.measurements] == [omb.Setup("OrtCpu"), slow]
    assert len({m.name for m in report.measurements}) == 2


def test_in_one_process_too(ort_cpu: type[omb.Preset]) -> None:
    tuned = omb.tune(small(), X, **HERE)
    assert tuned.measurement.median > 0
    with pytest.raises(omb.OptionError, match="processes=True"):
        omb.tune(small(), X, objective="memory", processes=False)


def test_a_setup_warns_on_another_machine() -> None:
    made = omb.Setup("OrtCpu", None, {}, {"processor": "another", "CPUs": "128"})
    with pytest.warns(omb.EnvironmentWarning, match="measured elsewhere.*CPUs"):
        made.prepare(models.relu([2, 3]))
    assert made == omb.Setup("OrtCpu") and made.digest == omb.Setup("OrtCpu").digest
    assert omb.Setup.from_json(made.to_json()).measured_on == made.measured_on
    assert pickle.loads(pickle.dumps(made)).measured_on == made.measured_on
    with pytest.raises(omb.OptionTypeError, match="measured_on"):
        omb.Setup("OrtCpu", None, {}, {"CPUs": 2})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"objective": "speed"}, "objective is one of 'latency', 'throughput', 'memory'"),
        ({"budget_s": 0}, "above 0"),
        ({"budget_s": "long"}, "a number of seconds"),
        ({"min_cosine": 2}, "from -1 to 1"),
        ({"max_error": "small"}, "max_error is a number"),
        ({"presets": ["OrtCpuu"]}, "OrtCpu"),
        ({"input_example": None, "shapes": {"z": (1,)}}, "The shape of 'z': there is no such input"),
        ({"input_example": None, "shapes": {"x": (1, 3)}}, "does not fit the input x: "),
        ({"input_example": None, "shapes": {"x": (1, 4, 8, 8)}}, "does not fit the input .*: dimension 1 is 3"),
        ({"shapes": {"x": (1, 3, 8, 8)}}, "Leave them out"),
    ],
)
def test_wrong_options_are_refused_before_anything_runs(options: dict[str, Any], words: str) -> None:
    given = {"input_example": X, "budget_s": 600} | options
    with pytest.raises(omb.OptionError, match=words):
        omb.tune(small(), tell=pytest.fail, **given)


def test_nothing_that_runs_is_an_error_with_the_reasons(ort_cpu: type[omb.Preset]) -> None:
    model = models.one_node("Relu", [models.tensor("x", [2])], [models.tensor("y", [2])])
    model.graph.node[0].domain = "nobody.knows"
    model.opset_import.append(models.helper.make_opsetid("nobody.knows", 1))
    with pytest.raises(omb.UnsupportedModelError, match="OrtCpu"):
        omb.tune(model, np.ones(2, np.float32), **HERE)


def test_a_limit_that_float32_itself_does_not_hold_asks_for_other_inputs(openvino: type[omb.Preset]) -> None:
    """OpenVINO's logarithm and ONNX Runtime's differ in the last bits."""
    model = models.one_node("LogSoftmax", [models.tensor("x", [9, 999])], [models.tensor("y", [9, 999])])
    with pytest.raises(omb.UnsupportedModelError, match="give some that the model is made for, or a looser limit"):
        omb.tune(model, **HERE | {"presets": ["Openvino"], "max_error": 0.0})


def test_what_cannot_be_kept_is_measured_all_the_same(odd: str) -> None:
    setup = omb.Setup(odd, None, {"way": "no cache"})
    (row,) = omb.bench(small(), X, presets=[setup], seconds=0.2).measurements
    assert row.outcome is Outcome.MEASURED and row.median > 0 and row.prepare_cached is None
    assert any("prepare from the cache not measured: nothing can be kept" in note for note in row.notes)


def test_a_preset_whose_knobs_raise_is_tried_with_its_defaults(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_KNOBS", "raise")
    with pytest.warns(omb.PresetWarning, match="no knobs today"):
        report = omb.tune(small(), X, presets=[odd], budget_s=30).report
    assert report.chosen == odd


def test_without_a_reference_a_limit_allows_nothing(openvino: type[omb.Preset]) -> None:
    model = models.one_node("RandomNormalLike", [models.tensor("x", [2, 3])], [models.tensor("y", [2, 3])])
    report = omb.tune(model, presets=["OrtCpu", "Openvino"], budget_s=20, max_error=1e-6, processes=False).report
    best = report.best
    assert report.reference == "" and best is not None and best.float32
    assert all(m.outcome is not Outcome.MEASURED for m in report.measurements if not m.float32)


def test_the_setup_of_an_int8_model_warns_before_the_float_model() -> None:
    made = omb.Setup("OrtCpu", None, {}, {**surroundings(), "model": "int8 (ort)"})
    with pytest.warns(omb.EnvironmentWarning, match="measured on the model in int8"):
        made.prepare(models.relu([2, 3]))
