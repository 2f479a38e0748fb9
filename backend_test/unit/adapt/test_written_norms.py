# SPDX-License-Identifier: Apache-2.0
"""Normalizations that are written out, and what is nearly one: engines put their own operator in the place of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from onnx_multi_backend.models.contents import Contents

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

Array = np.ndarray[Any, Any]

#: Whether each mean keeps its axis (None: no mean is subtracted), the power and epsilon.
FORMS: dict[str, tuple[int | None, int, float, str]] = {
    "a first mean without its axis": (0, 1, 2, "eps"),
    "a second mean without its axis": (1, 0, 2, "eps"),
    "both without their axis": (0, 0, 2, "eps"),
    "squares alone, without their axis": (None, 0, 2, "eps"),
    "a cube": (1, 1, 3, "large"),
    "an epsilon for each row": (1, 1, 2, "rows"),
    "a normalization": (1, 1, 2, "eps"),
    "a normalization of squares": (None, 1, 2, "eps"),
}
EPSILONS = {"eps": np.float32(0.1), "large": np.float32(5), "rows": np.float32([[0.1], [0.5], [1], [2]])}


def _model(form: str, columns: int = 4) -> ModelProto:
    first, second, _, epsilon = FORMS[form]
    centred = "c = Identity (x)"
    if first is not None:
        centred = f"m = ReduceMean <axes = [-1], keepdims = {first}> (x) c = Sub (x, m)"
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[n, {columns}] x) => (float[n, {columns}] y)
        <float power = {{{FORMS[form][2]}}}, float eps = {{0.1}}, float large = {{5}}, float[4, 1] rows = {{0.1, 0.5, 1, 2}}, float[{columns}] g = {{{", ".join(map(str, range(1, columns + 1)))}}}> {{
        {centred} p = Pow (c, power) v = ReduceMean <axes = [-1], keepdims = {second}> (p) a = Add (v, {epsilon}) s = Sqrt (a) d = Div (c, s)
        k = Mul (d, g) y = {"Identity (k)" if first is None else "Add (k, g)"} }}"""
    )


def _expected(form: str, x: Array) -> Array:
    first, second, power, epsilon = FORMS[form]
    c = x if first is None else x - x.mean(-1, keepdims=bool(first))
    spread = (c**power).mean(-1, keepdims=bool(second))
    found: Array = c / np.sqrt(spread + EPSILONS[epsilon]) * np.float32([1, 2, 3, 4])
    return found if first is None else found + np.float32([1, 2, 3, 4])


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_counts(preset: type[omb.Preset], form: str) -> None:
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    found = preset.prepare(_model(form), fallback="full").run([x])[0]
    np.testing.assert_allclose(found, _expected(form, x), rtol=1e-4, atol=1e-5)


def test_normalizations_are_left_to_the_engines(preset: type[omb.Preset]) -> None:
    from onnx_multi_backend.engines.ort.optimizers.harmful import harmful_optimizers

    for form in ("a normalization", "a normalization of squares"):
        assert not preset.prepare(_model(form, 32), fallback="full").adaptations
        assert not harmful_optimizers(Contents(_model(form)))
    assert harmful_optimizers(Contents(_model("a cube")))


@pytest.mark.parametrize("between", ["Identity", "Dropout"])
def test_what_engines_leave_out_hides_nothing(preset: type[omb.Preset], between: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[n, 4] x) => (float[n, 4] y) <float two = {{2}}, float eps = {{0.1}}, float[4] g = {{1, 2, 3, 4}}> {{
        m = ReduceMean <axes = [-1]> (x) c = Sub (x, m) p = Pow (c, two) v = ReduceMean <axes = [-1], keepdims = 0> (p) w = {between} (v) a = Add (w, eps)
        s = Sqrt (a) d = Div (c, s) k = Mul (d, g) y = Add (k, g) }}"""
    )
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, _expected("a second mean without its axis", x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("square", ["Pow (two, c)", "Mul (c, x)"])
def test_what_is_no_square(preset: type[omb.Preset], square: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[n, 4] x) => (float[n, 4] y) <float two = {{2}}, float eps = {{5}}, float[4] g = {{1, 2, 3, 4}}> {{
        m = ReduceMean <axes = [-1]> (x) c = Sub (x, m) p = {square} v = ReduceMean <axes = [-1]> (p) a = Add (v, eps)
        s = Sqrt (a) d = Div (c, s) k = Mul (d, g) y = Add (k, g) }}"""
    )
    x = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
    c = x - x.mean(-1, keepdims=True)
    spread = (2**c if "Pow" in square else c * x).mean(-1, keepdims=True)
    g = np.float32([1, 2, 3, 4])
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, c / np.sqrt(spread + 5) * g + g, rtol=1e-4, atol=1e-5)


def test_a_deviation_is_no_normalization() -> None:
    from onnx_multi_backend.engines.ort.optimizers.harmful import harmful_optimizers

    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[n, 4] x) => (float[m] y) <float two = {2}, float eps = {0.1}> { m = ReduceMean <axes = [-1]> (x)
        c = Sub (x, m) p = Pow (c, two) v = ReduceMean <axes = [-1], keepdims = 0> (p) a = Add (v, eps) s = Sqrt (a) y = Concat <axis = 0> (s, s) }"""
    )
    assert not harmful_optimizers(Contents(model))


def test_an_epsilon_that_stands_first(preset: type[omb.Preset]) -> None:
    """ONNX Runtime 1.24 took its default for it."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]> g (float[n, 4] x) => (float[n, 4] y) <float two = {2}, float eps = {0.1}, int64[1] axis = {1},
        float[4] g = {1, 2, 3, 4}> { p = Pow (x, two) v = ReduceMean <keepdims = 1> (p, axis) a = Add (eps, v) s = Sqrt (a) d = Div (x, s) y = Mul (d, g) }"""
    )
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    found = preset.prepare(model, fallback="full").run([x])[0]
    np.testing.assert_allclose(found, _expected("a normalization of squares", x), rtol=1e-4, atol=1e-5)
