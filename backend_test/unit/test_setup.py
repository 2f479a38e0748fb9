# SPDX-License-Identifier: Apache-2.0
"""A setup says preset, device and options, in JSON too, and prepares a model so."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.float32([[1, -2, 3]])
THREADS = {"intra_op_num_threads": 1, "session_options": {"enable_mem_reuse": False}}


def test_it_prepares_what_the_preset_prepares(ort_cpu: type[omb.Preset]) -> None:
    setup = omb.Setup("OrtCpu", "CPU", THREADS)
    for rep in (setup.prepare(models.relu(), input_example=X), omb.prepare(models.relu(), setup=setup)):
        assert (rep.preset, rep.device) == ("OrtCpu", "CPU")
        options = rep._session.native.get_session_options()
        assert (options.intra_op_num_threads, options.enable_mem_reuse) == (1, False)
        np.testing.assert_array_equal(rep.run(X)[0], np.maximum(X, 0))


def test_json_and_pickle_give_it_back() -> None:
    setup = omb.Setup("Ort", None, {"provider_name": ("CPUExecutionProvider",), **THREADS})
    read = omb.Setup.from_json(json.loads(json.dumps(setup.to_json())))
    assert read == setup == pickle.loads(pickle.dumps(setup))
    assert read.options["provider_name"] == ["CPUExecutionProvider"]
    assert len({read, setup}) == 1


def test_the_digest_is_the_same_in_another_process(fresh: Callable[..., str]) -> None:
    setup = omb.Setup("OrtCpu", None, THREADS)
    other = {name: THREADS[name] for name in reversed(THREADS)}
    code = f"import onnx_multi_backend as omb; print(omb.Setup('OrtCpu', None, {other!r}).digest)"
    assert fresh(code) == setup.digest != omb.Setup("OrtCpu").digest


def test_what_is_equal_has_one_digest() -> None:
    same = [omb.Setup("OrtCpu", None, {"session_options": {"x": value}}) for value in (True, 1, 1.0)]
    assert all((a == b) == (a.digest == b.digest) == (hash(a) == hash(b)) for a in same for b in same)


def test_it_cannot_be_changed() -> None:
    options = {"intra_op_num_threads": 1, "session_options": {"log_severity_level": 3}}
    setup = omb.Setup("OrtCpu", None, options)
    options["session_options"]["log_severity_level"] = 0  # type: ignore[index]
    assert setup.options["session_options"] == {"log_severity_level": 3}
    digest = setup.digest
    setup.options["session_options"]["log_severity_level"] = 1
    setup.to_json()["options"].clear()
    assert setup.digest == digest == omb.Setup.from_json(setup.to_json()).digest
    with pytest.raises(TypeError):
        setup.options["intra_op_num_threads"] = 2  # type: ignore[index]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("OrtCpu", None, {"input_example": X}), "cannot hold input_example=array"),
        (("OrtCpu", None, {"time_limit": float("nan")}), "cannot hold time_limit=nan"),
        (("OrtCpu", None, {1: 2}), "mapping of names"),
        (("OrtCpu", None, {"session_options": {1: "a", "1": "b"}}), "the name 1 is not a string"),
        (("OrtCpu", None, {"intra_op_num_threads": np.int64(2)}), "cannot hold intra_op_num_threads"),
        (("OrtCpu", 0), "names of a preset and a device"),
        ((None,), "names of a preset and a device"),
    ],
)
def test_what_has_no_json_form_is_refused(given: Any, message: str) -> None:
    with pytest.raises(omb.OptionTypeError, match=message):
        omb.Setup(*given)


def test_wrong_use_is_one_error(ort_cpu: type[omb.Preset]) -> None:
    setup = omb.Setup("OrtCpu", None, THREADS)
    with pytest.raises(omb.OptionError, match="device and preset out"):
        omb.prepare(models.relu(), device="CUDA", setup=setup)
    with pytest.raises(omb.OptionError, match="intra_op_num_threads already"):
        setup.prepare(models.relu(), intra_op_num_threads=2)
    with pytest.raises(omb.OptionError, match="no preset 'OrtCqu'"):
        omb.Setup("OrtCqu").prepare(models.relu())
    with pytest.raises(omb.OptionError, match="no option device"):
        omb.Setup("OrtCpu", None, {"device": "CPU"})
    with pytest.raises(omb.OptionError, match="device already"):
        setup.prepare(models.relu(), device="CPU")
    with pytest.raises(omb.OptionTypeError, match="setup is a Setup"):
        omb.prepare(models.relu(), setup=setup.to_json())  # type: ignore[arg-type]
    with pytest.raises(omb.OptionError, match="of which preset is needed"):
        omb.Setup.from_json({"preset": "OrtCpu", "option": {}})
    with pytest.raises(omb.OptionError, match="of which preset is needed"):
        omb.Setup.from_json({"device": "CPU"})


def test_options_tell_their_choices() -> None:
    choices = {o.name: o.choices for o in (*omb.OpenvinoBackend.options, *omb.OrtTensorrtInt8QDQBackend.options)}
    assert choices["precision"] == ("f32", "f16", "bf16", "default")
    assert choices["trt_fp16_enable"] == (False, True)
    assert choices["input_example"] is None
