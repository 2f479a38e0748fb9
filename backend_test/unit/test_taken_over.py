# SPDX-License-Identifier: Apache-2.0
"""Tensors without elements, on which OpenVINO's built-in provider fails in a run: the CPU provider takes over, and that is told."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import expected
from onnx_multi_backend.engines.ort import plugins, providers
from onnx_multi_backend.engines.ort.openvino_ep import around as around_openvino

TAKES_OVER = "does not take a tensor without elements .* All of it runs on CPUExecutionProvider from now on"
SIZES = {"x": (1, 2, 3, 4), "c": (5, 2), "s": (5, 2), "p": (1, 3)}


@pytest.fixture(autouse=True)
def built_in(openvino_ep: type[omb.Preset]) -> None:
    if not plugins.built_in(providers.OPENVINO):
        pytest.skip("the OpenVINO execution provider comes from the plugin here")


def parsed(graph: str, opset: int = 23) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {graph}')


def rotated() -> ModelProto:
    """All of a head is rotated: what is left over has no elements."""
    return parsed(
        """(float[1, 2, 3, 4] x, float[5, 2] c, float[5, 2] s, int64[1, 3] p) => (float[1, 2, 3, 4] y) {
        y = RotaryEmbedding (x, c, s, p) }"""
    )


def feeds(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    made = {name: rng.uniform(-1, 1, shape).astype(np.float32) for name, shape in SIZES.items()}
    return {**made, "p": rng.integers(0, 5, SIZES["p"])}


def constants() -> ModelProto:
    """What is written around a Ceil of float16 runs on the provider, all of it."""
    return parsed(
        """() => (float16[3, 0] y, float16[3, 0] z) <float16[3, 0] e = {}, bool c = {0}> {
        y = Ceil (e) z = If (c) <then_branch = a () => (float16[3, 0] t) { t = Identity (y) },
        else_branch = b () => (float16[3, 0] f) { f = Identity (y) }> }""",
        14,
    )


def providers_of(prepared: omb.PreparedModel) -> set[str]:
    return {node.provider for node in prepared.placement()}


@pytest.mark.filterwarnings("ignore:.*nodes run on CPUExecutionProvider")
def test_the_cpu_takes_over_and_says_so_once(openvino_ep: type[omb.Preset]) -> None:
    prepared = openvino_ep.prepare(rotated())
    assert providers.OPENVINO in providers_of(prepared)
    with pytest.warns(omb.FallbackWarning, match=TAKES_OVER) as caught:
        first = prepared.run(feeds(0))[0]
    assert [w.filename for w in caught] == [__file__]
    assert providers_of(prepared) == {providers.CPU}
    assert prepared.get_providers() == [providers.CPU]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = [first, *(prepared.run(feeds(seed))[0] for seed in (1, 2))]
        bound = prepared.bind(feeds(3))
        results.append(bound.run()[0])
    for seed, result in enumerate(results):
        np.testing.assert_allclose(result, expected(rotated(), *feeds(seed).values())[0], rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.*nodes run on CPUExecutionProvider")
def test_it_is_told_of_a_model_in_another_process_too(openvino_ep: type[omb.Preset]) -> None:
    with openvino_ep.prepare(rotated(), isolate=True) as prepared:
        assert providers.OPENVINO in providers_of(prepared)
        with pytest.warns(omb.FallbackWarning, match=TAKES_OVER):
            prepared.run(feeds(0))
        assert providers_of(prepared) == {providers.CPU}


@pytest.mark.filterwarnings("ignore:.*nodes run on CPUExecutionProvider")
def test_an_input_without_elements(openvino_ep: type[omb.Preset]) -> None:
    made = parsed("(float[4, 4, 0] x, float[1, 4, 0] y, float[4, 4, 1] z) => (float[4, 4, 0] w) { w = Max (x, y, z) }")
    prepared = openvino_ep.prepare(made)
    arrays = [np.zeros(i.shape, i.dtype) for i in prepared.get_inputs()]
    with pytest.warns(omb.FallbackWarning, match=TAKES_OVER):
        (result,) = prepared.run(arrays)
    assert (result.shape, result.dtype) == ((4, 4, 0), np.float32)


def test_without_fallback_it_stays_an_error_that_says_why(
    openvino_ep: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        around_openvino, "computed_ahead", lambda payload, **_: (payload, ())
    )  # else nothing is left to run
    prepared = openvino_ep.prepare(constants(), fallback="none")
    for _ in range(2):
        with pytest.raises(omb.RunError, match="A tensor has no elements.*fallback='partial'"):
            prepared.run([])
    assert providers_of(prepared) == {providers.OPENVINO}


@pytest.mark.filterwarnings("ignore:.*nodes run on CPUExecutionProvider")
def test_a_model_that_was_changed_meanwhile_does_not_take_over(openvino_ep: type[omb.Preset], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(rotated(), path)
    prepared = openvino_ep.prepare(path)
    onnx.save(constants(), path)
    with pytest.raises(omb.RunError, match="A tensor has no elements"):
        prepared.run(feeds(0))


@pytest.mark.filterwarnings("ignore")
def test_several_threads_meet_it_at_once(openvino_ep: type[omb.Preset]) -> None:
    prepared = openvino_ep.prepare(rotated())
    right = prepared_on_cpu(0)
    results: list[np.ndarray] = []
    workers = [threading.Thread(target=lambda: results.append(prepared.run(feeds(0))[0])) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(results) == 4
    for result in results:
        np.testing.assert_allclose(result, right, rtol=1e-5, atol=1e-6)


def prepared_on_cpu(seed: int) -> np.ndarray:
    result: np.ndarray = omb.OrtCpuBackend.prepare(rotated()).run(feeds(seed))[0]
    return result


def test_sizes_known_only_at_run_time_stay_on_the_provider(openvino_ep: type[omb.Preset]) -> None:
    made = parsed("(float[n, 2] x) => (float[n, 2] y) { a = Sin (x) b = Cos (a) c = Sigmoid (b) y = Add (c, c) }")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepared = openvino_ep.prepare(made)
        for n in (3, 0, 2):
            assert prepared.run([np.zeros((n, 2), np.float32)])[0].shape == (n, 2)
    assert providers_of(prepared) == {providers.OPENVINO}


@pytest.mark.filterwarnings("ignore:.*nodes run on CPUExecutionProvider")
def test_the_cpu_takes_over_where_the_provider_names_results_otherwise(openvino_ep: type[omb.Preset]) -> None:
    """A one-sided transform along the first axis of a real or complex signal, as the run says."""
    model = parsed(
        "(float[3, 3, n] x) => (float[a, b, c] y) <int64 axis = {1}> { y = DFT <onesided = 1> (x, , axis) }", 20
    )
    prepared = openvino_ep.prepare(model)
    x = np.random.default_rng(0).normal(0, 1, (3, 3, 1)).astype(np.float32)
    right = np.fft.rfft(x[..., 0].astype(float), axis=1)
    with pytest.warns(
        omb.FallbackWarning, match="names the results of a part of model 'g' otherwise than ONNX Runtime"
    ):
        first = prepared.run(x)[0]
    assert providers_of(prepared) == {providers.CPU}
    for result in (first, prepared.run(x)[0]):
        np.testing.assert_allclose(result, np.stack([right.real, right.imag], -1), rtol=1e-4, atol=1e-5)
