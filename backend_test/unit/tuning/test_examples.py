# SPDX-License-Identifier: Apache-2.0
"""Inputs that are drawn for a measurement."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.tuning.examples import examples_of

_MODEL = '<ir_version: 10, opset_import: ["" : 21]> g (float[4] x) => (float[4] y) { y = Relu(x) }'


def _drawn(seed: Any) -> list[np.ndarray[Any, Any]]:
    found = examples_of(load(parser.parse_model(_MODEL)), None, None, None, seed)
    return [feeds["x"] for feeds in found.feeds]


def test_the_first_inputs_are_those_of_the_seed_and_the_others_of_the_next_ones() -> None:
    first, second, _ = _drawn(0)
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(_drawn(1)[0], second)
    np.testing.assert_array_equal(_drawn(0)[0], first)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(OptionError, match="seed is a whole number"):
        _drawn(seed)
