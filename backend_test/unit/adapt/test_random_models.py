# SPDX-License-Identifier: Apache-2.0
"""The generator of random models, which no engine has a part in."""

from __future__ import annotations

import numpy as np
import onnx
from hypothesis import HealthCheck, given, settings

from backend_test.unit.adapt.random_graphs import Made, random_models

_quietly = [HealthCheck.too_slow, HealthCheck.filter_too_much]


def test_the_models_hold_what_they_are_to_hold() -> None:
    """A test of the generator: every kind of thing is drawn, and is valid."""
    found: set[str] = set()

    @settings(max_examples=500, deadline=None, derandomize=True, database=None, suppress_health_check=_quietly)
    @given(random_models())
    def look(made: Made) -> None:
        onnx.checker.check_model(made.model, full_check=True)
        found.update(node.op_type for node in made.model.graph.node)
        found.add(f"opset {made.model.opset_import[0].version}")
        found.add(made.dtype)
        if made.model.functions:
            found.add("function")
        for array in made.arrays:
            found.add("finite" if np.isfinite(array).all() else "not finite")
            found.add("elements" if array.size else "no elements")

    look()
    kinds = {"If", "Loop", "Scan", "function", "not finite", "no elements", "float16", "uint64"}
    assert found >= kinds, kinds - found
    assert len([word for word in found if word.startswith("opset")]) > 10
