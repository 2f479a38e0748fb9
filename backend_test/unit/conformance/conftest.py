# SPDX-License-Identifier: Apache-2.0
"""A foreign backend for the tests of the conformance package."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.fixture
def onnxruntime_backend() -> ModuleType:
    """ONNX Runtime's own backend."""
    backend: ModuleType = pytest.importorskip("onnxruntime.backend")
    if not backend.supports_device("CPU"):
        pytest.skip("this build of ONNX Runtime says it does not support CPU")
    return backend
