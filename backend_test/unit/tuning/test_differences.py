# SPDX-License-Identifier: Apache-2.0
"""How far results are from others."""

from __future__ import annotations

import math

import numpy as np
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.tuning.differences import FLOAT32_NOISE, Difference, Limits, compare, noise_of, nudged

NAN, INF = math.nan, math.inf


def one(a: object, b: object) -> Difference:
    return compare([np.asarray(a)], [np.asarray(b)])


def test_equal_results_have_no_difference() -> None:
    for values in ([1.0, -2.0], [NAN, INF, -INF], [], 3.0, np.array(["a", "b"], object), [True, False], [1 + 2j]):
        assert one(values, values) == Difference()


def test_figures_of_an_ordinary_difference() -> None:
    found = one([1.0, 2.0, -4.0], [1.0, 2.5, -4.0])
    assert found.largest == pytest.approx(0.5) and found.relative == pytest.approx(0.125)
    assert found.cosine == pytest.approx(
        np.dot([1, 2, -4], [1, 2.5, -4]) / np.linalg.norm([1, 2, -4]) / np.linalg.norm([1, 2.5, -4])
    )


@pytest.mark.parametrize(
    ("a", "b"), [([1.0, NAN], [1.0, 2.0]), ([1.0, 2.0], [1.0, NAN]), ([INF, 1.0], [-INF, 1.0]), ([1.0], [INF])]
)
def test_what_is_not_a_number_on_one_side_alone_is_as_far_as_can_be(a: list[float], b: list[float]) -> None:
    found = one(a, b)
    assert found.largest == INF and found.cosine == -1
    assert Limits(max_error=1e9).why_not(found) and Limits(min_cosine=-0.5).why_not(found) and Limits().why_not(found)


def test_other_shapes_and_counts_are_unlike() -> None:
    for a, b in (([np.ones(2)], [np.ones(3)]), ([np.ones(2)], []), ([[np.ones(1)]], [[np.ones(1), np.ones(1)]])):
        assert compare(a, b).cosine == -1
    assert one(np.array(["a"], object), np.array(["b"], object)).largest == INF


def test_large_and_small_numbers_do_not_overflow() -> None:
    for scale in (1e300, 1e-300):
        assert one(np.array([1.0, 2.0]) * scale, np.array([1.0, 2.0]) * scale * (1 + 1e-9)).cosine == pytest.approx(1)


def test_integers_are_compared_exactly() -> None:
    assert one(np.array([2**53 + 2]), np.array([2**53])).largest == 2


def test_limits() -> None:
    difference = Difference(0.5, 0.01, 0.995)
    assert Limits(max_error=0.5).why_not(difference) == ""
    assert "0.4 is allowed" in Limits(max_error=0.4).why_not(difference)
    assert Limits(min_cosine=0.99).why_not(difference) == ""
    assert "0.999 is the least" in Limits(min_cosine=0.999).why_not(difference)
    assert "float32 noise" in Limits().why_not(difference)
    assert Limits(noise=0.02).why_not(difference) == ""
    for wrong in ({"max_error": -1}, {"min_cosine": 1.5}, {"max_error": NAN}, {"min_cosine": NAN}):
        with pytest.raises(omb.OptionError):
            Limits(**wrong)


def test_noise_is_what_the_last_bit_of_the_inputs_changes() -> None:
    x = np.array([1.5, -2.25, 0.0, 3.0], np.float32)
    changed = nudged(x)
    assert changed.dtype == x.dtype and (changed != x).tolist() == [True, True, False, False]
    assert np.abs(changed - x).max() < 1e-6
    assert nudged(np.arange(3)) is not None and (nudged(np.arange(3)) == np.arange(3)).all()
    assert noise_of(Difference()) == FLOAT32_NOISE
    assert noise_of(Difference(relative=0.005)) == pytest.approx(0.05)
    assert noise_of(Difference(relative=5.0)) < 1


def test_a_cosine_alone_is_no_proof() -> None:
    for a, b in (([[1.0]], [[1.9]]), ([3.0, 6.0, 9.0], [1.0, 2.0, 3.0])):
        found = one(a, b)
        assert found.cosine == pytest.approx(1) and "noise" in Limits(min_cosine=0.999).why_not(found)


def test_results_of_other_kinds_are_unlike() -> None:
    assert compare([None, np.ones(1)], [np.ones(1), None]).cosine == -1
    assert one(1.0, np.array("a", object)).cosine == -1
    near = compare([[{0: 0.5, 1: 0.25}]], [[{0: 0.5, 1: 0.25 + 1e-8}]])
    assert 0 < near.largest < 1e-7
