# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime without the private names that this package uses: everything works, on public names alone."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models

X = np.float32([[1, -2, 3], [-4, 5, -6]])


class Public:
    """Hides whatever starts with an underscore, of a session or a binding."""

    def __init__(self, hidden: Any) -> None:
        object.__setattr__(self, "hidden", hidden)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.hidden, name)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AssertionError(f"{name} was set")

    def io_binding(self) -> Public:
        return Public(self.hidden.io_binding())

    def run_with_iobinding(self, binding: Public, run_options: Any = None) -> None:
        self.hidden.run_with_iobinding(binding.hidden, run_options)


@pytest.fixture
def public(ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> type[omb.Preset]:
    from onnxruntime.capi import onnxruntime_inference_collection as collection

    real = collection.InferenceSession
    monkeypatch.setattr(collection, "InferenceSession", lambda *args, **kwargs: Public(real(*args, **kwargs)))
    return ort_cpu


def test_small_models_of_fixed_shapes_run(public: type[omb.Preset]) -> None:
    rep = public.prepare(models.relu((2, 3)))
    assert isinstance(rep._session.native, Public)
    for x in (X, -X, X):
        np.testing.assert_array_equal(rep.run(x)[0], np.maximum(x, 0))


def test_other_models_run_bind_stream_and_come_from_a_cache(public: type[omb.Preset], tmp_path: Path) -> None:
    for _ in range(2):
        rep = public.prepare(models.linear(), cache_dir=tmp_path)
        right = omb.OrtCpuBackend.prepare(models.linear()).run(X)[0]
        np.testing.assert_array_equal(rep.run(X)[0], right)
        np.testing.assert_array_equal(rep.run(X, output_device="CPU")[0], right)
        np.testing.assert_array_equal(next(iter(rep.run_many([X])))[0], right)
        bound = rep.bind(X.copy())
        bound.run()
        np.testing.assert_array_equal(bound.outputs[rep.get_outputs()[0].name], right)
        assert rep.get_providers() == ["CPUExecutionProvider"]


def test_a_wrong_run_is_still_a_run_error(public: type[omb.Preset]) -> None:
    made = models.one_node("Add", [models.tensor("a", ["N"]), models.tensor("b", ["M"])], [models.tensor("y", ["K"])])
    with pytest.raises(omb.RunError):
        public.prepare(made).run([np.zeros(2, np.float32), np.zeros(5, np.float32)])


def test_private_names_stand_in_one_file() -> None:
    engines = Path(omb.__file__).parent / "engines" / "ort"
    private = re.compile(r"\._(sess|iobinding|model_bytes|ortvalue|pybind_state|get_c_device)\b|import _pybind_state")
    assert [file.name for file in sorted(engines.glob("*.py")) if private.search(file.read_text())] == ["native.py"]
