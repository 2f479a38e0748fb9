# SPDX-License-Identifier: Apache-2.0
"""A classifier of real digits: the bound on its accuracy's drop holds in resamples."""

from __future__ import annotations

import functools
import importlib.util

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.calibration import QuantizedModel, quantize
from onnx_multi_backend.calibration.bounds import upper_bound

# Not imported before it is needed: that takes a second, in each process that collects the tests.
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("sklearn") is None, reason="scikit-learn, which comes with NNCF, is not installed"
)

#: Samples that the classifier learns from; the others are those that it will meet.
LEARNT = 600


def digits() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return images.astype(np.float32), labels


@functools.cache
def classifier() -> onnx.ModelProto:
    """Two layers, with the weights that scikit-learn learns."""
    from sklearn.neural_network import MLPClassifier

    images, labels = digits()
    learnt = MLPClassifier((32,), max_iter=60, random_state=0, tol=1e-2).fit(images[:LEARNT], labels[:LEARNT])
    weights = {f"w{i}": w.astype(np.float32) for i, w in enumerate(learnt.coefs_)}
    weights |= {f"b{i}": b.astype(np.float32) for i, b in enumerate(learnt.intercepts_)}
    nodes = [
        models.node("Gemm", ["x", "w0", "b0"], ["hidden"], name="first"),
        models.node("Relu", ["hidden"], ["kept"]),
        models.node("Gemm", ["kept", "w1", "b1"], ["y"], name="second"),
    ]
    return models.model(nodes, [models.tensor("x", ["N", 64])], [models.tensor("y", ["N", 10])], initializers=weights)


@functools.cache
def quantized() -> QuantizedModel:
    images, labels = digits()
    batches = [(images[i : i + 20], labels[i : i + 20]) for i in range(0, LEARNT, 20)]
    return quantize(
        classifier(),
        batches,
        metric=lambda outputs, right: outputs[0].argmax(axis=1) == right,
        max_drop=0.1,
        min_cosine=None,
        require_speedup=False,
        progress=False,
    )


def test_the_int8_classifier_reads_digits_as_well() -> None:
    images, labels = digits()
    report = quantized().report
    assert report.quantized
    drop = report.accuracy.metric
    assert drop is not None
    assert drop.samples == LEARNT // 5
    assert drop.bound <= 0.1
    unseen, right = images[LEARNT:], labels[LEARNT:]
    plain, int8 = (
        (omb.OrtCpuBackend.run_model(m, unseen)[0].argmax(axis=1) == right).mean() for m in (classifier(), quantized())
    )
    assert int8 > plain - 0.03


def test_the_bound_holds_in_95_of_100_resamples() -> None:
    images, labels = digits()
    unseen, right = images[LEARNT:], labels[LEARNT:]
    hits = [
        (omb.OrtCpuBackend.run_model(m, unseen)[0].argmax(axis=1) == right).astype(float)
        for m in (classifier(), quantized())
    ]
    drops = hits[0] - hits[1]
    rng = np.random.default_rng(0)
    bounds = [upper_bound(rng.choice(drops, 120), low=-1, high=1, confidence=0.95) for _ in range(200)]
    assert sum(bound >= drops.mean() for bound in bounds) >= 190
    assert np.median(bounds) < 0.1  # and it says something
