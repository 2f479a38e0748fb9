# SPDX-License-Identifier: Apache-2.0
"""What a search may try is what the presets take."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.presets.knobs import OBJECTIVES, Host, Knob, merged
from onnx_multi_backend.presets.options import Option, flag, one_of
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.space import space_of, usable

NEEDED = {"Ort": {"provider_name": "CPUExecutionProvider"}, "OrtTensorrtInt8": {"calibration_table": {"x": 1.0}}}


def knobs_of(preset: type[omb.Preset]) -> tuple[Knob, ...]:
    kind = preset.family.default.partition(":")[0]
    return preset.knobs(Host(8, kind, simultaneous=True))


@pytest.mark.parametrize("name", sorted(omb.presets()))
def test_every_choice_is_an_option_that_the_preset_takes(name: str) -> None:
    preset = omb.presets()[name]
    if name.startswith("Ort") and not preset.engine_version():
        pytest.skip("ONNX Runtime is not installed")
    for one, other in itertools.combinations_with_replacement(knobs_of(preset), 2):
        assert set(one.objectives) <= set(OBJECTIVES)
        for first, second in itertools.product(one.choices, other.choices):
            options = merged(merged(NEEDED.get(name, {}), first.options), second.options)
            preset._settle(None, options)
            assert Setup(name, None, options).to_json()["options"]
    labels = [choice.label for knob in knobs_of(preset) for choice in knob.choices]
    assert len(labels) == len(set(labels))


def test_every_choice_prepares_a_model_on_this_host(preset: type[omb.Preset]) -> None:
    tried = 0
    for objective in OBJECTIVES:
        space = space_of(preset.name, objective=objective, shapes={"x": (2, 3)})
        for candidate in space.neighbours(space.start):
            candidate.setup.prepare(models.relu())
            tried += 1
    assert tried


def test_a_preset_from_outside_is_tuned_by_the_options_that_list_their_values() -> None:
    class Outside(omb.OrtCpuBackend):
        name = "Outside"
        options = (
            Option("level", one_of("low", "high"), "low"),
            Option("fast", flag, default=True),
            Option("path", lambda name, value: value),
        )
        knobs = classmethod(omb.Preset.knobs.__func__)

    knobs = Outside.knobs(Host(2, "CPU", simultaneous=False))
    assert [[choice.options for choice in knob.choices] for knob in knobs] == [[{"level": "high"}], [{"fast": False}]]


def test_presets_that_are_part_of_another_are_not_searched_twice(ort_cpu: type[omb.Preset]) -> None:
    names, refused = usable(None, model_is_quantized=False)
    assert "OrtCpu" in names and not refused
    assert not {"Ort", "OrtTensorrtInt8"} & set(names)
    assert "OrtOpenvinoFloat" not in names or "OrtOpenvino" not in names


def test_all_combinations_are_counted(ort_cpu: type[omb.Preset]) -> None:
    space = space_of("OrtCpu", objective="latency")
    everything = list(space.everything())
    expected = 1
    for knob in space.knobs:
        expected *= len(knob.choices) + 1
    assert len({candidate.key for candidate in everything}) == len(everything) == expected


def test_a_hint_for_nothing_is_one_that_openvino_takes(openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(models.relu([2, 3]), performance_hint="UNDEFINED")
    assert rep.run(np.full((2, 3), -1, np.float32))[0].max() == 0
