# SPDX-License-Identifier: Apache-2.0
"""Types that a model declares completely, as PyTorch's exporter does: inferring them again would add nothing."""

from __future__ import annotations

import pytest
from onnx import TensorProto, helper

from onnx_multi_backend.adapt.inferring.ancestors import Declared


@pytest.mark.parametrize(
    ("shape", "told"),
    [
        ([2, 3], True),
        (["batch", 3], True),  # a size of an input: nothing tells its number before the run
        (["some", 3], False),  # it may be computed from constants
        ([None, 3], False),
        (None, False),
    ],
)
def test_sizes_that_the_inputs_leave_open_are_complete(shape: list[int | str | None] | None, told: bool) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["h"]), helper.make_node("Abs", ["h"], ["y"])]
    x, h, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        for name, dims in (("x", ["batch", 3]), ("h", shape), ("y", ["batch", 3]))
    )
    graph = helper.make_graph(nodes, "g", [x], [y], value_info=[h])
    assert Declared(graph).tells(graph.node[1]) == told
