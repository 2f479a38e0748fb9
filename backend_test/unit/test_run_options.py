# SPDX-License-Identifier: Apache-2.0
"""Options of one run: by name, or as an object of ONNX Runtime's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.conftest import without_the_plugin

X = np.float32([[-1, 2, 3]])
RIGHT = [[0, 2, 3]]


@pytest.fixture(params=("OrtCpu", "OrtOpenvino"))
def on_ort(request: pytest.FixtureRequest) -> type[omb.Preset]:
    name = {"OrtCpu": "ort_cpu", "OrtOpenvino": "openvino_ep"}[request.param]
    preset: type[omb.Preset] = request.getfixturevalue(name)
    return preset


def run_options(**values: Any) -> Any:
    made = pytest.importorskip("onnxruntime").RunOptions()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def test_onnx_runtimes_own_are_used_as_they_are(on_ort: type[omb.Preset]) -> None:
    rep = on_ort.prepare(models.relu((1, 3)))
    given = run_options(log_severity_level=3)
    for _ in range(3):  # from the second on, small models run on buffers of their own
        assert rep.run(X)["y"].tolist() == RIGHT
        assert rep.run(None, X, given)["y"].tolist() == RIGHT
        assert rep.run(X, run_options=given)["y"].tolist() == RIGHT
        assert rep.run(["y"], X, given, output_device="CPU")["y"].tolist() == RIGHT
    with pytest.raises(omb.RunError, match="(?i)terminate"):
        rep.run(X, run_options=run_options(terminate=True))
    assert rep.run(X)["y"].tolist() == RIGHT


def test_a_session_takes_them_as_its_third_argument(on_ort: type[omb.Preset]) -> None:
    without_the_plugin(on_ort)
    session = omb.InferenceSession(models.relu((1, 3)).SerializeToString(), preset=on_ort.name)
    for given in (run_options(), {"log_severity_level": 3}, {}, None):
        (y,) = session.run(None, {"x": X}, given)
        assert y.tolist() == RIGHT
    with pytest.raises(omb.RunError):
        session.run(["y"], {"x": X}, run_options(terminate=True))


def test_they_stand_alone(on_ort: type[omb.Preset]) -> None:
    rep = on_ort.prepare(models.relu((1, 3)))
    with pytest.raises(omb.OptionError, match="run_options is a RunOptions and logid given beside it"):
        rep.run(X, run_options=run_options(), logid="here")
    assert rep.run(X, run_options={"logid": "here"}, log_severity_level=3)["y"].tolist() == RIGHT


def test_openvino_has_none_of_any_type(openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(models.relu((1, 3)))
    with pytest.raises(omb.OptionError, match=r"OpenVINO has no run options; RunOptions given.*Set properties"):
        rep.run(None, X, run_options())
    assert rep.run(None, X, {})["y"].tolist() == RIGHT


@pytest.mark.parametrize("given", [5, 0, "logid", [], [("logid", "here")]])
def test_another_type_is_refused(preset: type[omb.Preset], given: Any) -> None:
    rep = preset.prepare(models.relu((1, 3)))
    with pytest.raises(omb.OptionTypeError, match=rf"run.options.*{type(given).__name__} (was )?given"):
        rep.run(None, X, given)


def test_names_are_strings(preset: type[omb.Preset]) -> None:
    with pytest.raises(omb.OptionTypeError, match="Names of run options are strings; 5 was given"):
        preset.prepare(models.relu((1, 3))).run(X, run_options={"logid": "here", 5: 5})


def test_names_are_those_that_onnx_runtime_has(ort_cpu: type[omb.Preset]) -> None:
    ort = pytest.importorskip("onnxruntime")
    rep = ort_cpu.prepare(models.relu((1, 3)))
    with pytest.raises(omb.OptionError, match="no run option 'output_device'"):
        rep.run(X, run_options={"output_device": "CPU"})
    with pytest.raises(omb.OptionError, match="no run option 'no_such'") as caught:
        rep.run(X, no_such=1)
    known = re.search(r"Known: (.*), and", str(caught.value))
    assert known is not None
    assert all(hasattr(ort.RunOptions(), name) for name in known[1].split(", "))
    if "training_mode" not in known[1]:
        with pytest.raises(omb.OptionError, match="no run option 'training_mode'"):
            rep.run(X, training_mode=True)


def test_a_process_of_its_own_takes_names(ort_cpu: type[omb.Preset]) -> None:
    with ort_cpu.prepare(models.relu((1, 3)), isolate=True) as rep:
        assert rep.run(X, run_options={"logid": "here"})["y"].tolist() == RIGHT
        with pytest.raises(
            omb.OptionTypeError, match="with isolate=True run_options is a mapping.*RunOptions was given"
        ):
            rep.run(X, run_options=run_options())
        with pytest.raises(omb.OptionTypeError, match="strings; 5"):
            rep.run(X, run_options={5: 5})


def test_names_of_outputs_are_strings(engine: type[omb.Preset]) -> None:
    with pytest.raises(omb.OptionError, match="the first names outputs, which are strings; int given"):
        engine.prepare(models.relu((1, 3))).run(5, [X])
