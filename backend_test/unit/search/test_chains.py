# SPDX-License-Identifier: Apache-2.0
"""Random chains: the same random numbers make the same, valid and no larger than they may be."""

from __future__ import annotations

import math
import random

import onnx
import pytest

from backend_test.search.graphs.chains.generate import random_chain


@pytest.mark.parametrize(("wide", "most"), [(False, 4096), (True, 70_000)])
def test_chains_are_valid_and_of_bounded_sizes(wide: bool, most: int) -> None:
    largest = 0
    for seed in range(30):
        made, again = (random_chain(random.Random(seed), wide=wide) for _ in range(2))
        assert made.model == again.model
        onnx.shape_inference.infer_shapes(made.model, check_type=True, strict_mode=True)
        sizes = [math.prod(t.dims) for t in made.model.graph.initializer]
        sizes += [array.size for feeds in made.feeds for array in feeds.values()]
        assert max(sizes) <= most
        largest = max(largest, *sizes)
    assert largest > most / 20
