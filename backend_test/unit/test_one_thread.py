# SPDX-License-Identifier: Apache-2.0
"""With one thread, as in a container with one CPU, OpenVINO loses the errors of a run: what an earlier run made came back."""

from __future__ import annotations

import warnings

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models

ADDED = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["": 17]> g (float[n, 2] x, float[m, 2] y) => (float[k, 2] z) { z = Add (x, y) }'
)
THREE, TWO = np.ones((3, 2), np.float32), np.ones((2, 2), np.float32)


@pytest.mark.parametrize("threads", [1, 2])
def test_inputs_that_do_not_fit_together_are_an_error(threads: int, openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(ADDED, INFERENCE_NUM_THREADS=threads)
    for _ in range(2):
        with pytest.raises(omb.RunError, match="mismatch"):
            rep.run([THREE, TWO])
        np.testing.assert_array_equal(rep.run([THREE, THREE])[0], 2 * THREE)


def test_a_bound_run_too(openvino: type[omb.Preset]) -> None:
    bound = openvino.prepare(ADDED, INFERENCE_NUM_THREADS=1).bind([THREE.copy(), THREE.copy()])
    bound.inputs["x"][...] = 4
    np.testing.assert_array_equal(bound.run()[0], THREE + 4)


def test_fixed_shapes_are_computed_in_the_thread_that_calls(openvino: type[omb.Preset]) -> None:
    for shape, loses in ((("n", 3), True), ((1, 3), False)):
        rep = openvino.prepare(models.relu(shape), INFERENCE_NUM_THREADS=1)
        assert rep._session._loses_errors is loses  # type: ignore[attr-defined]
        np.testing.assert_array_equal(rep.run(np.float32([[-1, 0, 2]]))[0], [[0, 0, 2]])


def test_on_the_execution_provider_a_warning_tells(built_in_ep: type[omb.Preset]) -> None:
    """Whose `infer` is OpenVINO's own."""
    with pytest.warns(omb.PresetWarning, match="loses errors"):
        built_in_ep.prepare(_long("n"), provider_options={"num_of_threads": "1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error", omb.PresetWarning)
        built_in_ep.prepare(_long("n"), provider_options={"num_of_threads": "2"})
        built_in_ep.prepare(_long(3), provider_options={"num_of_threads": "1"})


def _long(size: int | str) -> onnx.ModelProto:
    """Of as many nodes as the provider wants."""
    nodes = [models.node("Relu", [f"v{i}"], [f"v{i + 1}"]) for i in range(5)]
    return models.model(nodes, [models.tensor("v0", [size, 2])], [models.tensor("v5", [size, 2])])
