# SPDX-License-Identifier: Apache-2.0
"""Random models, in every opset from 7 on, against ONNX's reference evaluator on the model as it was before adaptation.

Named, because they are not faults of the rewriting:

- The reference knows no Scan of no steps; none is drawn.
- Max and Min broadcast since opset 8; before, they are not drawn.
- OpenVINO keeps neither NaN (Exp, Relu, Max and Min lose it) nor the range of 64-bit types, so it gets finite numbers of
  float32 and int32.
- What OpenVINO refuses with a typed error, a Loop around tensors without elements for one, is an answer too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, event, given, note, settings
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import expected
from backend_test.unit.adapt.random_graphs import Made, random_models, with_type

#: The share of the models that OpenVINO may refuse.
MOST_REFUSED = 0.1

_quietly = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]


def check(made: Made, results: Sequence[np.ndarray]) -> None:
    """Hold results to what the reference evaluator computes."""
    wide = []
    if made.dtype == "float16":  # the reference rounds after each node, a wider type once: either will do
        arrays = [array.astype(np.float32) if array.dtype == np.float16 else array for array in made.arrays]
        model = with_type(made.model, TensorProto.FLOAT16, TensorProto.FLOAT)
        wide = expected(model, *arrays)
    for number, (result, right) in enumerate(
        zip(results, map(np.asarray, expected(made.model, *made.arrays)), strict=True)
    ):
        assert (result.dtype, result.shape) == (right.dtype, right.shape)
        if result.dtype == np.float16:
            with np.errstate(over="ignore"):
                once = np.asarray(wide[number]).astype(np.float16)
            close = [
                np.isclose(result.astype(float), other.astype(float), rtol=2e-2, atol=1e-2, equal_nan=True)
                for other in (right, once)
            ]
            assert (close[0] | close[1]).all(), (result, right, once)
        elif result.dtype.kind == "f":
            np.testing.assert_allclose(result, right, rtol=1e-4, atol=1e-6)
        else:
            np.testing.assert_array_equal(result, right)


@settings(max_examples=250, deadline=None, suppress_health_check=_quietly)
@given(random_models())
def test_on_onnx_runtime(ort_cpu: type[omb.Preset], made: Made) -> None:
    onnx.checker.check_model(made.model, full_check=True)
    prepared = ort_cpu.prepare(made.model)
    event("adapted" if prepared.adaptations else "untouched")
    note(f"{onnx.printer.to_text(made.model)}\n{prepared.adaptations}")
    check(made, prepared.run(made.arrays))


@pytest.mark.hypothesis
def test_on_openvino(openvino: type[omb.Preset]) -> None:
    outcomes: Counter[str] = Counter()

    @settings(max_examples=60, deadline=None, suppress_health_check=_quietly)
    @given(random_models(("float32", "int32"), finite=True))
    def each(made: Made) -> None:
        try:
            prepared = openvino.prepare(made.model)
        except omb.UnsupportedModelError as error:
            if not error.operators:
                raise
            outcomes["refused"] += 1
            return
        outcomes["run"] += 1
        note(f"{onnx.printer.to_text(made.model)}\n{prepared.adaptations}")
        check(made, prepared.run(made.arrays))

    each()
    assert outcomes["refused"] <= MOST_REFUSED * outcomes.total(), outcomes
