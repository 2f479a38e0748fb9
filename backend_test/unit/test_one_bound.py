# SPDX-License-Identifier: Apache-2.0
"""A Clip of one bound behind an operator that OpenVINO lacks, which ends the process of its frontend; and one of a constant."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.search.cases import cases
from onnx_multi_backend.engines.openvino.one_bound import CONVERTED

X = np.float32([[1, 2], [3, 4]])  # its determinant is -2


def model(nodes: str, more: str = "", opset: int = 17) -> ModelProto:
    inputs = f"float[2, 2] x{more}"
    head = f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => (float y) <float low = {{-1}}, float high = {{-5}}>'
    return onnx.parser.parse_model(f"{head} {{ {nodes} }}")


@pytest.mark.parametrize(
    ("nodes", "right"),
    [
        ("d = Det (x) y = Clip (d, low)", -1),
        ('d = Det (x) y = Clip (d, "", high)', -5),
        ("d = Det (x) y = Clip (d)", -2),
        ("d = Det (x) n = Neg (d) y = Clip (n, low)", 2),
        ("d = Det (x) m = Neg (low) y = Clip (d, m)", 1),
        ("d = Det (x) y = Clip (d, low, high)", -5),
    ],
)
def test_it_runs(openvino: type[omb.Preset], nodes: str, right: float) -> None:
    prepared = openvino.prepare(model(nodes))
    assert prepared.run([X])[0] == pytest.approx(right, abs=1e-5)
    assert ("one_bound" in {a.pass_name for a in prepared.adaptations}) == ("low, high" not in nodes)


@pytest.mark.parametrize("shape", ["1", "1, 1", "1, 2"])
@pytest.mark.parametrize(
    "nodes",
    [
        "y = Clip (c, low)",
        "d = Neg (c) y = Clip (d, low)",
        "y = Clip (c, low, nine)",
        "d = Neg (c) y = Clip (d, low, nine)",
        "t = Constant <value = float {9}> () n = Abs (t) y = Clip (c, low, n)",
    ],
)
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_a_constant_keeps_its_axes(preset: type[omb.Preset], nodes: str, shape: str) -> None:
    sizes = [int(size) for size in shape.split(",")]
    values = ", ".join(["5", "-5"][: sizes[-1]])
    head = f'<ir_version: 8, opset_import: ["": 17]> g (float low) => (float[{shape}] y) <float[{shape}] c = {{{values}}}, float nine = {{9}}>'
    made = onnx.parser.parse_model(f"{head} {{ {nodes} }}")
    prepared = preset.prepare(made, fallback="full")
    for low in (-1, 6):
        found = prepared.run([np.float32(low)])[0]
        sign = -1 if "Neg" in nodes else 1
        assert found.shape == tuple(sizes)
        np.testing.assert_array_equal(found, np.maximum(sign * np.float32([5, -5][: sizes[-1]]).reshape(sizes), low))


def test_it_runs_in_a_branch_and_in_a_function(openvino: type[omb.Preset]) -> None:
    branch = """y = If (c) <then_branch = t () => (float p) { d = Det (x) p = Clip (d, low) },
                           else_branch = e () => (float q) { b = Det (x) q = Neg (b) }>"""
    prepared = openvino.prepare(model(branch, ", bool c"))
    for condition, right in ((True, -1), (False, 2)):
        assert prepared.run([X, np.array(condition)])[0] == pytest.approx(right, abs=1e-5)
    called = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17, "local": 1]> g (float[2, 2] x) => (float y) { y = local.f (x) }
        <domain: "local", opset_import: ["": 17]> f (a) => (b) { d = Det (a) low = Constant <value = float {-1}> () b = Clip (d, low) }"""
    )
    assert openvino.prepare(called).run([X])[0] == pytest.approx(-1, abs=1e-5)


def test_what_openvino_lacks_and_nobody_writes_is_refused_in_words(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="lacks DeformConv"):
        openvino.prepare(
            onnx.parser.parse_model(
                """<ir_version: 8, opset_import: ["": 19]> g (float[1, 1, 3, 3] x, float[1, 1, 2, 2] w, float[1, 8, 2, 2] o)
                => (float[1, 1, 2, 2] y) <float low = {0}> { d = DeformConv (x, w, o) y = Clip (d, low) }"""
            )
        )


def test_other_models_keep_it(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(model("s = ReduceSum <keepdims = 0> (x) y = Clip (s, low)"))
    assert not prepared.adaptations


def test_openvino_converts_what_it_is_said_to(openvino: type[omb.Preset]) -> None:
    """ONNX's own cases of one node, two of each operator."""
    from onnx_multi_backend.engines.openvino import runtime

    alone = [c.model for c in cases()[0] if c.model is not None and len(c.model.graph.node) == 1]
    seen: Counter[str] = Counter()
    lacking: set[str] = set()
    for made in alone:
        operator = made.graph.node[0].op_type
        seen[operator] += 1
        if seen[operator] > 2 or operator not in CONVERTED:
            continue
        try:
            runtime.core().read_model(made.SerializeToString())
        except runtime.all_errors() as error:
            found = re.findall(r"No conversion rule found for operations: ([^.]*?) To", str(error).replace("\n", " "))
            lacking |= {name.strip().rsplit("-", 1)[0] for names in found for name in names.split(",")}
    assert len(seen.keys() & CONVERTED) > 150
    assert not lacking & CONVERTED
