# SPDX-License-Identifier: Apache-2.0
"""Outputs are compared whole, and arrays as strictly as the stock runner compares them."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np
import pytest

from onnx_multi_backend.conformance.stock_runner import StockRunner

A = np.array([1.0, 2.0], np.float32)
B = np.array([3.0], np.float32)
Outputs = namedtuple("Outputs", ["y"])


def compare(expected: Any, actual: Any) -> None:
    StockRunner.assert_similar_outputs(expected, actual, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([A], (A,)),
        ([A], Outputs(A)),
        ([A], np.array([A])),
        ([np.float32(1)], [np.array(1, np.float32)]),
        ([[A, B]], [(A, B)]),
        ([[]], [[]]),
        ([[np.array(1.0), np.array(2.0)]], [[np.array(1.0), np.array(2.0)]]),
        ([[[A], []]], [[[A], []]]),
        ([None], [None]),
        ([[A, None]], [[A, None]]),
        ([{"a": np.float32(0.1)}], [{"a": 0.1}]),
        ([[{1: 0.1, 2: 0.9}]], [[{1: 0.1, 2: 0.9}]]),
        ([{1: "cat"}], [{1: "cat"}]),
        ([np.array(["a"], object)], [np.array(["a"], object)]),
        ([np.array([np.nan])], [np.array([np.nan])]),
    ],
)
def test_equal_outputs_are_equal(expected: Any, actual: Any) -> None:
    compare(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ([A], []),
        ([A], [A, A]),
        ([[A, B]], [[]]),
        ([[A, B]], [[A]]),
        ([[A]], [[A, B]]),
        ([[]], [[A]]),
        ([[[A], [B]]], [[[A], []]]),
        ([[A]], [A]),
        ([A], [[A]]),
        ([None], [A]),
        ([A], [None]),
        ([None], [[]]),
        ([{"a": 0.1}], [{}]),
        ([{}], [{"a": 0.1}]),
        ([{"a": 0.1}], [{"a": 0.2}]),
        ([{"a": 1}], [{"a": 1.0}]),
        ([{1: "cat"}], [{1: "dog"}]),
        ([A], [A + 1]),
        ([A], [A.astype(np.float64)]),
        ([A], [A.reshape(1, 2)]),
        ([[A, B]], [[A, B + 1]]),
        ([[A]], [[A.astype(np.float64)]]),
        ([[np.ones((2, 1))]], [[np.ones((2,))]]),
        ([np.array(["a"], object)], [np.array(["b"], object)]),
    ],
)
def test_a_difference_anywhere_fails(expected: Any, actual: Any) -> None:
    with pytest.raises(AssertionError):
        compare(expected, actual)


@pytest.mark.parametrize("actual", [{"y": A}, None, 1.0])
def test_outputs_that_are_no_sequence_are_refused(actual: Any) -> None:
    with pytest.raises(TypeError, match="expected a sequence of outputs"):
        compare([A], actual)
