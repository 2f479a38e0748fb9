# SPDX-License-Identifier: Apache-2.0
"""Constants beyond int32 that become results, or are compared, without arithmetic: OpenVINO limited them without a word."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

BIG, MOST = 2**40 + 3, 2**63 - 1
X = np.float32([1, 2, 3, 4])
#: What is refused, or whole.
FORMS: dict[str, tuple[str, list[Any], Any]] = {
    "ConstantOfShape": (
        f"(float[n] x) => (int64[c] y) {{ f = Shape (x) y = ConstantOfShape <value = int64[1] {{{BIG}}}> (f) }}",
        [X],
        [BIG] * 4,
    ),
    "ConstantOfShape, compared": (
        f"(float[n] x, int64[n] w) => (bool[c] y) {{ f = Shape (x) k = ConstantOfShape <value = int64[1] {{{BIG}}}> (f) y = Equal (k, w) }}",
        [X, np.full(4, 2**31 - 1)],
        [False] * 4,
    ),
    "a branch": (
        f"""(bool q, int64[2] k) => (int64[2] y) {{ y = If (q) <then_branch = t () => (int64[2] o) {{ o = Constant <value = int64[2] {{{BIG}, 5}}> () }},
        else_branch = e () => (int64[2] p) {{ p = Identity (k) }}> }}""",
        [np.array(True), np.array([1, 2])],
        [BIG, 5],
    ),
    "each step": (
        f"""(int64 n, int64[2] s) => (int64[a, b] y, int64[2] v) {{ v, y = Loop (n, , s) <body = b (int64 i, bool g, int64[2] c) => (bool h, int64[2] d, int64[2] r) {{
        h = Identity (g) d = Neg (c) r = Constant <value = int64[2] {{{BIG}, 5}}> () }}> }}""",
        [np.array(2), np.array([1, 2])],
        [[BIG, 5]] * 2,
    ),
    "Cast": (
        "(float[n] x) => (int64 y, float[n] z) <float f = {1099511627776}> { z = Neg (x) y = Cast <to = 7> (f) }",
        [X],
        2**40,
    ),
    "Cast behind Identity": (
        "(float[n] x) => (uint64 y, float[n] z) <double f = {1099511627776}> { z = Neg (x) g = Identity (f) y = Cast <to = 13> (g) }",
        [X],
        2**40,
    ),
}


def parsed(graph: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g {graph}')


@pytest.mark.parametrize("form", FORMS)
def test_they_are_whole_or_refused(preset: type[omb.Preset], form: str) -> None:
    graph, feeds, wanted = FORMS[form]
    try:
        prepared = preset.prepare(parsed(graph), fallback="full")
    except omb.UnsupportedModelError:
        assert preset is not omb.OrtCpuBackend
        return
    np.testing.assert_array_equal(prepared.run(feeds)["y"], wanted)


@pytest.mark.parametrize(
    "graph",
    [
        f"(float[n] x) => (float[m] y) <int64[1] s = {{1}}> {{ o = Shape (x) f = Shape (o) k = ConstantOfShape <value = int64[1] {{{MOST}}}> (f) y = Slice (x, s, k) }}",
        f"""(float[n] x, bool q) => (float[m] y) <int64[1] s = {{1}}> {{ k = If (q) <then_branch = t () => (int64[1] o) {{ o = Constant <value = int64[1] {{{MOST}}}> () }},
        else_branch = e () => (int64[1] p) {{ p = Constant <value = int64[1] {{2}}> () }}> y = Slice (x, s, k) }}""",
        "(float[n] x) => (float[n] y, int64 k) <float f = {1000}> { y = Neg (x) k = Cast <to = 7> (f) }",
    ],
    ids=["ConstantOfShape", "If", "a small number"],
)
def test_ends_of_slices_and_small_numbers_are_taken(openvino: type[omb.Preset], graph: str) -> None:
    model = parsed(graph)
    feeds = [X, np.array(True)][: len(model.graph.input)]
    wanted = -X if "Neg" in graph else X[1:]
    np.testing.assert_array_equal(openvino.prepare(model).run(feeds)["y"], wanted)
