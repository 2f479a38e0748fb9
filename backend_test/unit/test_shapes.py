# SPDX-License-Identifier: Apache-2.0
"""One prepared model runs on any shape that it declares, with and without an example."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.openvino.target import OpenvinoTarget
from onnx_multi_backend.engines.ort.target import OrtTarget

RNG = np.random.default_rng(3)


def batch(rows: int, columns: int = 3) -> np.ndarray:
    return RNG.standard_normal((rows, columns)).astype(np.float32)


def check(rep: omb.PreparedModel, x: np.ndarray) -> None:
    weights = np.arange(3, dtype=np.float32)[:, None] + 10 * np.arange(2, dtype=np.float32)
    np.testing.assert_allclose(rep.run(x)[0], x @ weights - 1, rtol=0.03, atol=0.3)


@pytest.mark.parametrize(
    "example", [None, batch(2), [batch(2)], {"x": batch(2)}], ids=["none", "array", "list", "dict"]
)
def test_two_batch_sizes_on_one_dynamic_model(preset: type[omb.Preset], example: Any) -> None:
    rep = preset.prepare(models.linear(), input_example=example)
    for rows in (2, 5, 1, 2, 0, 7):
        x = batch(rows)
        check(rep, x)


def test_the_example_goes_by_position_where_the_signature_says_so(openvino: type[omb.Preset]) -> None:
    check(omb.OpenvinoBackend(models.linear(), batch(2)), batch(4))


def _fixed(base: type[omb.Preset]) -> tuple[type[omb.Preset], list[Any]]:
    """A preset for an engine that compiles for fixed shapes, as TensorRT does, and the shapes that it compiles for."""
    compiled: list[Any] = []
    native = OrtTarget if issubclass(base, omb.OrtCpuBackend) else OpenvinoTarget

    class Recorder(native):  # type: ignore[misc, valid-type]
        def build(self, payload: Any) -> Any:
            compiled.append(payload.shapes)
            return super().build(payload)

    class Fixed(base):  # type: ignore[misc, valid-type]
        name = "Fixed"
        fixed_shapes = True

        @classmethod
        def make_target(cls, settings: Any, device: Any, loaded: Any) -> Any:
            made = super().make_target(settings, device, loaded)
            return Recorder(**{f: getattr(made, f) for f in made.__dataclass_fields__})

    return Fixed, compiled


def _seen(compiled: list[Any]) -> list[int]:
    return [shapes["x"][0] for shapes in compiled if shapes is not None]


def test_each_new_shape_is_compiled_once_and_the_last_four_are_kept(
    engine: type[omb.Preset], caplog: pytest.LogCaptureFixture
) -> None:
    preset, compiled = _fixed(engine)
    rep = preset.prepare(models.linear(), input_example=batch(1))
    with caplog.at_level(logging.INFO, logger="onnx_multi_backend"):
        for rows in (1, 1, 2, 3, 4, 1):
            check(rep, batch(rows))
        assert _seen(compiled) == [1, 2, 3, 4]
        check(rep, batch(5))  # pushes out 2, which was unused longest
        check(rep, batch(1))
        assert _seen(compiled) == [1, 2, 3, 4, 5]
        check(rep, batch(2))
        assert _seen(compiled) == [1, 2, 3, 4, 5, 2]
    told = [r.getMessage() for r in caplog.records]
    assert len(told) == 5
    assert all("Fixed compiled model 'tiny' for shapes" in t and t.endswith(" ms") for t in told)
    assert "(5, 3)" in told[3]


def test_without_an_example_the_first_run_is_the_example(engine: type[omb.Preset]) -> None:
    preset, compiled = _fixed(engine)
    rep = preset.prepare(models.linear())
    check(rep, batch(3))
    check(rep, batch(3))
    assert _seen(compiled) == [3]


def test_the_order_of_a_mapping_is_no_new_shape(engine: type[omb.Preset]) -> None:
    preset, compiled = _fixed(engine)
    rep = preset.prepare(models.subtract())
    a, b = batch(2), batch(2)
    for inputs in ([a, b], {"a": a, "b": b}, {"b": b, "a": np.asfortranarray(a)}, {"b": b.astype(">f4"), "a": a}):
        np.testing.assert_array_equal(rep.run(inputs)[0], a - b)
    assert len([c for c in compiled if c is not None]) == 1


def test_a_model_of_fixed_shapes_is_compiled_once(engine: type[omb.Preset]) -> None:
    preset, compiled = _fixed(engine)
    rep = preset.prepare(models.relu([2, 3]), input_example=batch(2))
    rep.run(batch(2))
    assert compiled == [None]


def test_openvino_compiles_for_the_very_shapes(openvino: type[omb.Preset]) -> None:
    preset, _ = _fixed(openvino)
    rep = preset.prepare(models.linear(), input_example=batch(6))
    assert list(rep._session.native.inputs[0].shape) == [6, 3]


def test_wrong_inputs_are_refused_before_anything_is_compiled(engine: type[omb.Preset]) -> None:
    preset, compiled = _fixed(engine)
    rep = preset.prepare(models.linear(), input_example=batch(1))
    with pytest.raises(omb.InputError):
        rep.run(batch(2, 4))
    assert _seen(compiled) == [1]
