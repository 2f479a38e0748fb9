# SPDX-License-Identifier: Apache-2.0
"""A name that no output has is answered with the names that there are."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.running.outputs import outputs_type


def test_an_unknown_name_lists_those_that_there_are() -> None:
    outputs = omb.prepare(models.relu()).run(np.ones((1, 3), np.float32))
    with pytest.raises(KeyError) as by_key:
        outputs["x"]
    assert isinstance(by_key.value, omb.OnnxMultiBackendError)
    assert str(pickle.loads(pickle.dumps(by_key.value))) == str(by_key.value)
    assert str(by_key.value) == "no output is called 'x'; the outputs are 'y'."
    with pytest.raises(AttributeError, match="^no output is called 'x'; the outputs are 'y'.$"):
        _ = outputs.x


def test_the_nearest_name_is_suggested() -> None:
    outputs = outputs_type(("scores", "boxes", "3"))._make(range(3))  # type: ignore[attr-defined]
    with pytest.raises(KeyError, match=r"the outputs are 'scores', 'boxes', '3'\. Did you mean 'scores'\?"):
        outputs["score"]
    with pytest.raises(AttributeError, match=r"Did you mean 'boxes'\?"):
        _ = outputs.box
    assert outputs["3"] == outputs[2] == outputs[-1] == 2
    assert outputs[:2] == (0, 1)


def test_many_names_are_not_all_listed() -> None:
    outputs = outputs_type(tuple(f"o{k}" for k in range(300)))._make(range(300))  # type: ignore[attr-defined]
    with pytest.raises(KeyError, match="'o19' and 280 more"):
        outputs["missing"]


def test_what_asks_for_special_methods_is_not_misled() -> None:
    outputs = outputs_type(("a", "b"))._make([1, 2])  # type: ignore[attr-defined]
    assert not hasattr(outputs, "__array_interface__")
    assert copy.deepcopy(outputs) == pickle.loads(pickle.dumps(outputs)) == outputs
    assert list(np.asarray(outputs)) == [1, 2]
