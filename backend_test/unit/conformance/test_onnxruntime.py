# SPDX-License-Identifier: Apache-2.0
"""A real engine: the suite says of ONNX Runtime's own backend what the stock runner says."""

from __future__ import annotations

import pytest
from onnx.backend.test import BackendTest

from onnx_multi_backend.conformance import Label, Suite

backend = pytest.importorskip("onnxruntime.backend")
if not backend.supports_device("CPU"):
    pytest.skip("this build of ONNX Runtime says it does not support CPU", allow_module_level=True)

# The stock runner takes the scalars in this sequence for sequences of outputs, and fails it whatever comes back.
MENDED = {"test_loop16_seq_none_cpu"}


def stock_passes(function: object) -> bool:
    try:
        function(None)  # type: ignore[operator]
    except Exception:  # whatever it is, the stock runner fails
        return False
    return True


def test_passes_are_the_stock_runners() -> None:
    def select(case: object) -> bool:
        kind, name = case.kind, case.name  # type: ignore[attr-defined]
        return kind in ("simple", "pytorch-operator") or any(w in name for w in ("seq", "optional", "string", "top_k"))

    suite = Suite(backend, name="onnxruntime")
    results = [suite.run(case.name) for case in suite.cases if select(case)]
    items = {n: item for group in BackendTest(backend)._test_items.values() for n, item in group.items()}
    differ = {r.name for r in results if r.label.is_pass != stock_passes(items[r.name].func)}
    assert len(results) > 100
    assert differ == MENDED
    assert {r.label for r in results} <= {Label.PASS, Label.FAIL, Label.SKIP}
