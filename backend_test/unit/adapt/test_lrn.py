# SPDX-License-Identifier: Apache-2.0
"""LRN on ONNX Runtime's CPU provider, whose own kernel carries one sum from channel to channel.

It stays in a model that needs no other change. ONNX Runtime refuses an LRN of another rank than 4 when it runs, so that is rewritten, and all of them
with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import ORT_CPU
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines.ort import engine, providers
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.tensors import numpy_dtype


def lrn(shape: list[Any], kind: int = TensorProto.FLOAT, *, opset: int = 17, size: int = 3, **given: Any) -> ModelProto:
    inputs, outputs = [models.tensor("x", shape, kind)], [models.tensor("y", shape, kind)]
    return models.one_node("LRN", inputs, outputs, opset=opset, size=size, **{"alpha": 3.0, "beta": 1.0, **given})


def beside(made: ModelProto) -> ModelProto:
    """The model with an LRN of three axes, which is rewritten."""
    made.graph.node.append(models.node("LRN", ["r"], ["s"], size=3))
    made.graph.input.append(models.tensor("r", [1, 2, 1]))
    made.graph.output.append(models.tensor("s", [1, 2, 1]))
    return made


R = np.ones((1, 2, 1), np.float32)


def right(x: np.ndarray, size: int = 3, bias: float = 1.0) -> np.ndarray:
    """Of alpha = 3 and beta = 1, in float64."""
    wide = x.astype(np.float64)
    before, behind = (size - 1) // 2, size // 2
    sums = [(wide[:, max(c - before, 0) : c + behind + 1] ** 2).sum(axis=1) for c in range(x.shape[1])]
    with np.errstate(invalid="ignore"):  # inf / inf
        return wide / (bias + 3 / size * np.stack(sums, axis=1))


@pytest.mark.parametrize("number", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("kind", "opset"),
    [
        *((TensorProto.FLOAT, opset) for opset in (5, 7, 9, 10, 11, 12, 13, 17, 18, 21)),
        *((TensorProto.FLOAT16, opset) for opset in (9, 17)),
        (TensorProto.BFLOAT16, 13),
        (TensorProto.BFLOAT16, 18),
    ],
)
def test_a_special_number_stays_with_its_neighbours(
    ort_cpu: type[omb.Preset], kind: int, opset: int, number: float
) -> None:
    x = np.ones((1, 6, 2, 1), numpy_dtype(kind))
    x[0, 1, 0] = number
    prepared = ort_cpu.prepare(beside(lrn(["n", "c", "h", 1], kind, opset=opset)))
    for given in (x, x[:, :4], x):
        found = prepared.run([given, R])[0]
        np.testing.assert_allclose(found.astype(float), right(given), rtol=1e-2)
        if opset >= 7:
            assert not [change for change in prepared.adaptations if change.pass_name == "opset_version"]


def test_a_special_number_in_a_branch_stays_with_its_neighbours(ort_cpu: type[omb.Preset]) -> None:
    made = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[1, 6, 2, 1] x, bool b) => (float[1, 6, 2, 1] y) { y = If (b) <
        then_branch = t () => (float[1, 6, 2, 1] z) { z = LRN <size = 3, alpha = 3.0, beta = 1.0> (x) },
        else_branch = e () => (float[1, 6, 2, 1] z) { z = Neg (x) }> }"""
    )
    x = np.ones((1, 6, 2, 1), np.float32)
    x[0, 1, 0] = np.nan
    np.testing.assert_allclose(ort_cpu.prepare(beside(made)).run([x, np.array(True), R])[0], right(x), rtol=1e-6)


def test_a_large_number_leaves_nothing_in_the_sums_behind_it(ort_cpu: type[omb.Preset]) -> None:
    """The square of 12345 is rounded to a multiple of 16."""
    x = np.full((1, 8, 1, 1), 0.5, np.float32)
    x[0, 1] = 12345
    found = ort_cpu.prepare(beside(lrn([1, 8, 1, 1], bias=0.0))).run([x, R])[0]
    np.testing.assert_allclose(found, right(x, bias=0.0), rtol=1e-6)


@pytest.mark.parametrize("size", [1, 3, 5, 31, 33])
@pytest.mark.parametrize("rank", [2, 3, 4, 5])
def test_any_rank_runs(ort_cpu: type[omb.Preset], rank: int, size: int) -> None:
    """ONNX Runtime's own refuses other ranks than 4 when it runs."""
    x = np.random.default_rng(0).normal(size=(2, 7, 3, 2, 2)[:rank]).astype(np.float32)
    prepared = ort_cpu.prepare(lrn(list(x.shape), size=size))
    np.testing.assert_allclose(prepared.run([x])[0], right(x, size), rtol=1e-5)


@pytest.mark.parametrize("size", [4001, 2**31 - 1])
def test_a_window_beyond_the_image_is_as_wide_as_that(ort_cpu: type[omb.Preset], size: int) -> None:
    x = np.random.default_rng(0).normal(size=(2, 7, 3)).astype(np.float32)
    found = ort_cpu.prepare(lrn([2, 7, 3], size=size, alpha=3.0 * size)).run([x])[0]
    np.testing.assert_allclose(found, x / (1 + 3 * (x.astype(np.float64) ** 2).sum(axis=1, keepdims=True)), rtol=1e-5)


def test_squares_of_float16_do_not_overflow(ort_cpu: type[omb.Preset], openvino: type[omb.Preset]) -> None:
    """Those of numbers from 256 on would. OpenVINO gets an even window wrong, so that it is rewritten there."""
    x = np.full((1, 4, 1, 1), 300, np.float16)
    for preset, size in ((ort_cpu, 3), (openvino, 4)):
        found = preset.prepare(lrn([1, 4, 1, 1], TensorProto.FLOAT16, size=size)).run([x])[0]
        np.testing.assert_allclose(found, right(x, size), rtol=2e-3)


def test_it_stays_in_a_model_that_needs_no_other_change(ort_cpu: type[omb.Preset]) -> None:
    """So does a wide window in any model, since the time of ONNX Runtime's own does not depend on it."""
    for size in (3, 31, 33):
        assert ort_cpu.prepare(lrn([1, 40, 2, 2], size=size)).adaptations == ()
        changed = ort_cpu.prepare(beside(lrn([1, 40, 2, 2], size=size))).adaptations
        assert len(changed) == (1 if size > 32 else 2)


@pytest.mark.parametrize(("takes", "rewritten"), [(True, False), (False, True)])
def test_another_provider_s_own_kernel_stays(
    monkeypatch: pytest.MonkeyPatch, ort_cpu: type[omb.Preset], takes: bool, rewritten: bool
) -> None:
    """Of a GPU, which is not needed to ask what the table says."""
    site = Site(lrn([1, 4, 2, 2]))
    assert ORT_CPU.find_defect(site)
    asked = engine.OrtEngine("OrtCuda", ((providers.CUDA, {}),), Device("CUDA"))
    monkeypatch.setattr(engine, "answer", lambda *_: None if takes else "it lacks LRN")
    assert bool(asked.find_defect(site)) is rewritten


def test_text_is_not_normalized(preset: type[omb.Preset]) -> None:
    """What reads a value of no known type told ONNX nothing; the rule that writes an LRN cannot write one of text."""
    text = "(string[1, 2, 3, 3] x) => (float[a, b, c, d] y) { n = LRN <size = 5> (x) y = LogSoftmax <axis = 0> (n) }"
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 11]> g {text}')
    with pytest.raises((omb.UnsupportedModelError, omb.InvalidModelError)):
        preset.prepare(made)
