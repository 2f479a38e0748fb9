# SPDX-License-Identifier: Apache-2.0
"""The reference that takes a graph node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

from backend_test.search import engines
from backend_test.search.answers import REFUSED, RESULT
from backend_test.search.stepwise import stepwise

FEEDS = [{"x": np.float32([[1, np.nan, -3]])}, {"x": np.float32([[4, 5, 6]])}]


def ask(text: str, feeds: list[dict[str, Any]]) -> Any:
    model = parser.parse_model(text).SerializeToString()
    return engines.reference(model, feeds), stepwise(model, feeds, lambda place: None)


def test_a_node_that_the_evaluator_does_not_run_leaves_it_the_others() -> None:
    """In opset 13 it has no DequantizeLinear; ONNX Runtime's ReduceMax loses a NaN, which the evaluator keeps."""
    whole, stepped = ask(
        """<ir_version: 8, opset_import: ["": 13]> g (float[N,3] x) => (float[N,1] y, float[2] z) {
            q = Constant<value = uint8[2] {3, 5}>()
            s = Constant<value = float {0.5}>()
            z = DequantizeLinear(q, s)
            y = ReduceMax<axes = [1]>(x)
        }""",
        FEEDS,
    )
    assert whole.kind == REFUSED and stepped.kind == RESULT
    (first, z), (second, _) = stepped.runs
    assert np.isnan(first).all() and second.item() == 6 and z.tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("s = SequenceConstruct(x, x) n = SequenceLength(s) c = CastLike(n, x) y = Add(x, c)", id="sequences"),
        pytest.param(
            """t = Constant<value = bool {0}>() d = Abs(x)
               y = If(t) <then_branch = a () => (float[N,3] p) { p = Neg(d) }, else_branch = b () => (float[N,3] q) { q = Add(d, d) }>""",
            id="a branch that reads outside",
        ),
        pytest.param("y = local.twice(x)", id="a function"),
    ],
)  # fmt: skip
def test_it_is_the_evaluator_where_that_runs_everything(body: str) -> None:
    whole, stepped = ask(
        f"""<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[N,3] x) => (float[N,3] y) {{ {body} }}
        <domain: "local", opset_import: ["": 17]> twice (a) => (b) {{ b = Add(a, a) }}""",
        FEEDS,
    )
    assert whole.kind == stepped.kind == RESULT
    np.testing.assert_equal(stepped.runs, whole.runs)


def test_a_node_that_nobody_runs_is_named() -> None:
    _, stepped = ask(
        """<ir_version: 8, opset_import: ["": 17, "elsewhere": 1]> g (float[N,3] x) => (float[N,3] y) { y = elsewhere.What(x) }""",
        FEEDS,
    )
    assert stepped.kind == REFUSED and "What" in stepped.error
