# SPDX-License-Identifier: Apache-2.0
"""What is computed of float16 constants alone, on the built-in OpenVINO provider: computed ahead, in float32."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import onnx_multi_backend as omb

RNG = np.random.default_rng(5)


def model(text: str, opset: int, **constants: np.ndarray) -> ModelProto:
    made = parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {text}')
    made.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    return made


HALVES = RNG.normal(size=(4, 4, 4, 4)).astype(np.float16)
CONSTANTS = RNG.integers(-2, 3, (2, 3, 3)).astype(np.float32)
SUM = np.abs(HALVES.astype(np.float32)).sum()
FORMS = [
    pytest.param(
        model("() => (float16 y) { y = ReduceL1<keepdims = 0>(c, a) }", 21, c=HALVES, a=np.array([2, 3, -4, -3])), [SUM], id="a reduction"
    ),
    pytest.param(
        model(
            "() => (float[2,9,9] t, float16 y) { t = Tile(c, r) k = Clip<max = 2.5, min = -1.5>(h) y = Acos(k) }",
            10, c=CONSTANTS, r=np.array([1, 3, 3]), h=np.array(0.25, np.float16),
        ),
        [np.tile(CONSTANTS, (1, 3, 3)), np.arccos(0.25)],
        id="two nodes",
    ),
    pytest.param(
        model(
            "(float[N] x) => (float[N] z, float16[4,4,4,4] y) { r = Cast<to = 8>(x) z = Cast<to = 1>(r) s = Sin(c) y = Mul(s, h) }",
            18, c=HALVES, h=np.array(2, np.float16),
        ),
        [np.float32([-2, 3]), 2 * np.sin(HALVES.astype(np.float32))],
        id="beside others",
    ),
    pytest.param(
        model(
            "(float[N] x) => (float[N] z, float16[96,3] y) { r = Cast<to = 8>(x) z = Cast<to = 1>(r) s = PRelu(c, k) y = Mul(s, h) }",
            18, c=np.tile(np.array([np.inf, -np.inf, -4], np.float16), (96, 1)), k=np.array([0, 0.5, 0.5], np.float16), h=np.array(2, np.float16),
        ),
        [np.float32([-2, 3]), np.tile(np.float32([np.inf, -np.inf, -4]), (96, 1))],
        id="slopes of infinite numbers",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "wanted"), FORMS)
def test_they_are_what_onnx_asks_for(made: ModelProto, wanted: list[np.ndarray], built_in_ep: type[omb.Preset]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        rep = built_in_ep.prepare(made, fallback="full")
    given = [np.float32([-2, 3])] if made.graph.input else []
    assert "half_constants" in {change.pass_name for change in rep.adaptations}
    for _ in range(2):
        for found, right in zip(rep.run(given), wanted, strict=True):
            np.testing.assert_allclose(found.astype(np.float32), right, rtol=5e-3, atol=5e-3)


FEW = np.array([0.5, 0.25, -0.5, 1], np.float16)
SINES = np.sin(FEW.astype(np.float32))
APART = [
    pytest.param(
        model("() => (optional(float16[4]) y) { s = Sin(c) y = Optional(s) }", 18, c=FEW), {}, [SINES], id="an optional, which holds no constant"
    ),
    pytest.param(
        model("(int8[5] x, int8[5] k) => (int8[5] v, float16[4] y) { v = Max(x, k) y = Sin(c) }", 12, c=FEW),
        {"x": np.int8([1, 5, -3, 4, 2]), "k": np.int8([2, 2, 2, 2, 2])},
        [[2, 5, 2, 4, 2], SINES],
        id="a node that only the provider has",
    ),
    pytest.param(
        model("(float[3] x, int64[N] a) => (float16[4] y, float[P, Q, R] z) { y = Sin(c) z = Unsqueeze(x, a) }", 18, c=FEW),
        {"x": np.float32([1, 2, 3]), "a": np.int64([0, 1])},
        [SINES, [[[1, 2, 3]]]],
        id="beside one that the provider lacks",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("made", "given", "wanted"), APART)
def test_small_ones_apart_from_others_are_left_alone(
    made: ModelProto, given: dict[str, np.ndarray], wanted: list[np.ndarray], built_in_ep: type[omb.Preset]
) -> None:
    """ONNX Runtime has no kernel for what was left once they were computed ahead, or leaves none to the provider."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        rep = built_in_ep.prepare(made)
    assert "half_constants" not in {change.pass_name for change in rep.adaptations}
    for _ in range(2):
        for found, right in zip(rep.run(given), wanted, strict=True):
            np.testing.assert_allclose(np.asarray(found, np.float32), right, rtol=5e-3)


@pytest.mark.parametrize("kind", ["int8", "float"])  # ONNX Runtime's CPU provider has no Max of int8
def test_large_ones_are_left_alone_where_the_provider_takes_all(kind: str, built_in_ep: type[omb.Preset]) -> None:
    x = np.array([1, 5, -3, 4], "float32" if kind == "float" else kind)
    text = f"({kind}[4] x, {kind}[4] k) => ({kind}[4] v, float16[4,4,4,4] y) {{ v = Max(x, k) y = Sin(c) }}"
    rep = built_in_ep.prepare(model(text, 12, c=HALVES), fallback="none")
    assert "half_constants" not in {change.pass_name for change in rep.adaptations}
    for _ in range(2):
        found = rep.run([x, np.full_like(x, 2)])
        for place, right in enumerate([[2, 5, 2, 4], np.sin(HALVES.astype(np.float32))]):
            np.testing.assert_allclose(found[place].astype(np.float32), right, rtol=5e-3, atol=5e-3)


LEFT = "q = Cast<to = 8>(x) z = Cast<to = 1>(q)"  # which goes to the CPU provider
MIXED = [
    pytest.param(f"(float[2] x) => (float16[n] y, float[m] z) {{ y = Sin(c) {LEFT} }}", HALVES[0].ravel(), {}, id="a large one"),
    pytest.param(
        f"(float[2] x) => (float16[n] y, float[m] z, float[64] w) {{ y = Sin(c) {LEFT} s = Constant<value_ints = [64]>() w = Expand(f, s) }}",
        FEW, {}, id="one that is large once it is computed",
    ),
    pytest.param(
        f"(float[2] x, float[64] b) => (float16[n] y, float[m] z, float[64] w) {{ y = Sin(c) {LEFT} s = Shape(b) w = Expand(f, s) }}",
        FEW, {}, id="one made to the size of an input",
    ),
    pytest.param(
        f"(float[2] x, float16[k] b) => (float16[n] y, float[m] z, float16[k] w) {{ y = Sin(c) {LEFT} r = ReduceMax(y) w = Mul(b, r) }}",
        FEW, {}, id="read with an open size",
    ),
    pytest.param(f"(float[2] x) => (float16[n] y, float[m] z) {{ y = Sin(c) {LEFT} }}", FEW, {"device": "AUTO:CPU"}, id="on AUTO"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "halves", "options"), MIXED)
def test_others_are_computed_ahead(
    text: str, halves: np.ndarray, options: dict[str, str], built_in_ep: type[omb.Preset]
) -> None:
    made = model(text, 17, c=halves, f=np.float32([1]))
    given = {"x": np.float32([-1, 2]), "b": np.ones(64, np.float16 if "float16[k]" in text else np.float32)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        rep = built_in_ep.prepare(made, fallback="full", **options)
    found = rep.run({v.name: given[v.name] for v in made.graph.input})
    assert "half_constants" in {change.pass_name for change in rep.adaptations}
    np.testing.assert_allclose(found[0].astype(np.float32), np.sin(halves.astype(np.float32)), rtol=5e-3, atol=5e-3)
    np.testing.assert_array_equal(found[1], given["x"])


def test_what_reads_an_input_too_is_left_alone(built_in_ep: type[omb.Preset]) -> None:
    made = model("(float16[4] x) => (float16[4] y) { m = Mul(x, h) y = Relu(m) }", 18, h=np.array(2, np.float16))
    rep = built_in_ep.prepare(made)
    assert "half_constants" not in {change.pass_name for change in rep.adaptations}


def test_where_nothing_is_computed_ahead_the_process_lives(built_in_ep: type[omb.Preset]) -> None:
    """With its constants in the branch of an If that is known, the provider (1.24.1) ends the process for the Casts."""
    made = model(
        """() => (float16[4,2] y, float16[4,2] z) {
            r = Reciprocal(h) y = Atanh(r)
            z = If(false) <then_branch = a () => (float16[4,2] p) { c = Cos(d) p = Identity(r) },
                else_branch = b () => (float16[4,2] q) { q = Identity(y) }>
        }""",
        21,
        h=np.array([[2, 3], [4, 5], [6, 7], [8, 9]], np.float16),
        false=np.array(False),
    )
    branch = next(a.g for a in made.graph.node[2].attribute if a.name == "then_branch")
    branch.initializer.append(numpy_helper.from_array(RNG.normal(size=(2, 2, 2, 2)), "d"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        rep = built_in_ep.prepare(made, fallback="full")
    wanted = np.arctanh(1 / np.arange(2, 10, dtype=np.float32)).reshape(4, 2)
    for found in rep.run([]):
        np.testing.assert_allclose(found.astype(np.float32), wanted, rtol=5e-3)


def test_slopes_in_an_opset_without_where(built_in_ep: type[omb.Preset]) -> None:
    made = model(
        "(float[2,N] x) => (int32[2,1] z, float16[96,3] y) { z = Multinomial<sample_size = 1>(x) s = PRelu(c, k) y = Mul(s, h) }",
        8,
        c=np.tile(np.array([5, -2, -4], np.float16), (96, 1)),
        k=np.array([0, 0.5, 0.5], np.float16),
        h=np.array(2, np.float16),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        rep = built_in_ep.prepare(made, fallback="full")
    assert "half_constants" in {change.pass_name for change in rep.adaptations}
    _, y = rep.run([np.float32([[-2, 3], [1, 1]])])
    np.testing.assert_array_equal(y, np.tile(np.float16([10, -2, -4]), (96, 1)))


def test_in_a_branch_of_a_model_that_the_provider_takes_whole(built_in_ep: type[omb.Preset]) -> None:
    numbers = np.round(RNG.normal(size=(2, 8, 3, 2)) * 8).astype(np.float16) + np.float16(0.25)
    made = model(
        """(bool x) => (float16[2,2,6,4] y, float16[2,2,6,4] z) {
            y = DepthToSpace <blocksize = 2> (c)
            z = If (x) <then_branch = a () => (float16[2,2,6,4] t) {
                    n = Constant <value = float[1] {-2}> () w = ScatterElements <axis = 0> (k, i, n) t = Identity (y) }, else_branch = b () => (float16[2,2,6,4] e) {
                u = Ceil (y) e = Identity (u) }> }""",
        16,
        c=numbers,
        k=np.array([-5], np.float32),
        i=np.array([0], np.int32),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", omb.FallbackWarning)
        rep = built_in_ep.prepare(made)
    for chosen in (True, False, True):
        y, z = rep.run([np.array(chosen)])
        np.testing.assert_array_equal(np.sort(y.ravel()), np.sort(numbers.ravel()))
        np.testing.assert_array_equal(z, y if chosen else np.ceil(y))
