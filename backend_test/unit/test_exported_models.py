# SPDX-License-Identifier: Apache-2.0
"""Models exported from scikit-learn and PyTorch: every engine computes what their own framework computed.

``nox -s export`` writes them to ``build/exported``; how they are made stands in `backend_test/exporters`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.conftest import without_the_plugin

EXPORTED = Path(__file__).parents[2] / "build" / "exported"
NAMES = (
    "trees",
    "linear",
    "text",
    "transformer",
    "transformer_newest_opset",
    "convolutional",
    "convolutional_newest_opset",
)

#: What the models that an engine refuses need and the engine lacks; each of them is named.
REFUSED = {
    ("Openvino", "trees"): {"ai.onnx.ml.OneHotEncoder", "ai.onnx.ml.TreeEnsembleClassifier"},
    ("Openvino", "linear"): {*(f"ai.onnx.ml.{o}" for o in ("Scaler", "LinearClassifier", "ZipMap"))},
    ("Openvino", "text"): {"StringNormalizer", "com.microsoft.Tokenizer", "ai.onnx.ml.LinearClassifier"},
}

#: What OpenVINO's execution provider leaves to the CPU.
ON_CPU = {
    "linear": {"ai.onnx.ml.LinearClassifier", "ai.onnx.ml.ZipMap"},
    "trees": {"Gather", "ai.onnx.ml.OneHotEncoder", "ai.onnx.ml.TreeEnsembleClassifier"},
    "text": {
        *("Reshape", "StringNormalizer", "com.microsoft.Tokenizer", "Flatten", "TfIdfVectorizer"),
        *("ai.onnx.ml.Normalizer", "ai.onnx.ml.LinearClassifier"),
    },
    "transformer": {"RMSNormalization"},
    "transformer_newest_opset": {"RMSNormalization"},
}


def folder(name: str) -> Path:
    if not EXPORTED.is_dir():
        pytest.skip(f"{EXPORTED} is not there; `nox -s export` writes it")
    return EXPORTED / name


def holds(model: omb.PreparedModel, name: str) -> None:
    """Run each case and compare it with what the source framework computed."""
    cases = sorted(folder(name).glob("inputs_*.npz"))
    assert cases
    for path in cases:
        outputs = model.run(dict(np.load(path)))
        expected = np.load(path.with_name(path.name.replace("inputs", "outputs")))
        assert [o.name for o in model.get_outputs()] == list(expected)
        for output in expected:
            compare(outputs[output], expected[output])


def compare(found: object, expected: np.ndarray) -> None:
    if expected.dtype.names:  # a sequence of maps
        assert isinstance(found, list)
        assert all(set(row) == set(expected.dtype.names) for row in found)
        found = np.array([[row[key] for key in expected.dtype.names] for row in found], np.float32)
        expected = np.array(expected.tolist(), np.float32)
    assert isinstance(found, np.ndarray)
    assert found.shape == expected.shape
    if expected.dtype.kind == "f":
        assert found.dtype == expected.dtype
        # Some dozen float32 roundings in another order; the frameworks differ by less than 1e-6 of the largest value.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(found.astype(expected.dtype), expected)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("name", NAMES)
def test_the_results_are_the_source_frameworks(preset: type[omb.Preset], name: str) -> None:
    path = folder(name) / "model.onnx"
    if name in ("text", "trees"):  # the plugin leaves no strings to the CPU provider
        without_the_plugin(preset)
    lacking = REFUSED.get((preset.name, name))
    if lacking is None:
        holds(preset.prepare(path), name)
        return
    with pytest.raises(omb.UnsupportedModelError) as refused:
        preset.prepare(path)
    assert set(refused.value.operators) == lacking
    assert all(operator in str(refused.value) for operator in lacking)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("name", NAMES)
def test_with_full_fallback_the_provider_runs_all_of_them(openvino_ep: type[omb.Preset], name: str) -> None:
    holds(openvino_ep.prepare(folder(name) / "model.onnx", fallback="full"), name)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("name", [name for name in NAMES if ("OrtOpenvino", name) not in REFUSED])
def test_the_provider_leaves_only_these_operators_to_the_cpu(built_in_ep: type[omb.Preset], name: str) -> None:
    placement = built_in_ep.prepare(folder(name) / "model.onnx").placement()
    assert {n.operator for n in placement if n.provider != "OpenVINOExecutionProvider"} <= ON_CPU.get(name, set())
