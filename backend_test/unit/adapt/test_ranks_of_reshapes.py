# SPDX-License-Identifier: Apache-2.0
"""The rank of what Reshape makes is the length of the new shape, also where that is known only in a run."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.adapt.inferring.inference import infer

#: The sizes are doubles of those of the input: onnx does not follow a Div.
SHAPE = "s = Shape (x) two = Constant <value_ints = [2]> () d = Div (s, two) h = Mul (d, two)"


def model(body: str, rank: int) -> onnx.ModelProto:
    sizes = ", ".join(f"n{i}" for i in range(rank))
    return onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 12]> g (float[{sizes}] x) => (float y) {{ {SHAPE} {body} }}'
    )


def ranks(inferred: onnx.ModelProto) -> dict[str, int]:
    typed = [v for v in (*inferred.graph.value_info, *inferred.graph.output) if v.type.tensor_type.HasField("shape")]
    return {v.name: len(v.type.tensor_type.shape.dim) for v in typed}


def test_ranks_are_followed_through_reshapes() -> None:
    made = model(
        "r = Reshape (x, h) q = Shape (r) e = Div (q, two) t = Reshape (r, e) z = Neg (t) y = ReduceMax (z)", 3
    )
    found = ranks(infer(made))
    assert (found["r"], found["t"], found["z"]) == (3, 3, 3)


@pytest.mark.parametrize("length", [-1, 10**9, 2**62])
def test_a_shape_of_any_length_is_no_rank(length: int) -> None:
    """A list of as many sizes took all memory there is."""
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 12]> g (float[n] x, int64[1] s) => (float y) { r = Reshape (x, s) y = ReduceMax (r) }'
    )
    made.graph.input[1].type.tensor_type.shape.dim[0].dim_value = length
    assert "r" not in ranks(infer(made))


@pytest.mark.parametrize(("rank", "rewritten"), [(3, True), (2, False)])
def test_a_softmax_over_the_last_axis_is_not_rewritten(
    openvino_ep: type[omb.Preset], rank: int, rewritten: bool
) -> None:
    """Of opset 12 it goes over axis 1 and all behind it, on OpenVINO over axis 1 alone."""
    made = model("r = Reshape (x, h) z = Softmax <axis = 1> (r) y = ReduceMax <keepdims = 0> (z)", rank)
    prepared, right = openvino_ep.prepare(made), omb.OrtCpuBackend.prepare(made)
    assert ("softmax_rows" in {change.pass_name for change in prepared.adaptations}) is rewritten
    x = np.random.default_rng(0).standard_normal((2, 4, 6)[:rank]).astype(np.float32)
    np.testing.assert_allclose(prepared.run([x])[0], right.run([x])[0], rtol=1e-5)
