# SPDX-License-Identifier: Apache-2.0
"""Results that are an input: OpenVINO leaves out the Cast between them, and later runs returned memory that nothing had been written to."""

from __future__ import annotations

import itertools

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

#: What changes nothing, from one value to another.
NOTHING = {
    "Cast": "$o = Cast <to = 1> ($i)",
    "CastLike": "$o = CastLike ($i, one)",
    "Casts": "$oa = Cast <to = 11> ($i) $o = Cast <to = 1> ($oa)",
    "Identity": "$o = Identity ($i)",
    "Mul": "$o = Mul ($i, one)",
    "Add": "$o = Add (zero, $i)",
    "Div": "$o = Div ($i, one)",
    "Concat": "$o = Concat <axis = 0> ($i)",
    "Max": "$o = Max ($i)",
    "Expand": "$o = Expand ($i, size)",
    "Tile": "$o = Tile ($i, repeats)",
    "Transposes": "$oa = Transpose <perm = [1, 0]> ($i) $o = Transpose <perm = [1, 0]> ($oa)",
    "Unsqueeze": "$oa = Unsqueeze ($i, size) $o = Squeeze ($oa, size)",
    "Neg": "$oa = Neg ($i) $o = Neg ($oa)",
}
CASTS = ("Cast", "CastLike", "Casts")
PAIRS = [pair for pair in itertools.product(NOTHING, NOTHING) if not {*pair}.isdisjoint(CASTS)]
CONSTANTS = "<float one = {1}, float zero = {0}, int64[1] size = {1}, int64[2] repeats = {1, 1}>"


def _written(name: str, read: str, made: str) -> str:
    return NOTHING[name].replace("$o", made).replace("$i", read)


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.parametrize("preset", ["openvino", "openvino_ep"])
def test_they_are_what_each_run_gives(preset: str, first: str, second: str, request: pytest.FixtureRequest) -> None:
    body = f"{_written(first, 'x', 'm')} {_written(second, 'm', 'y')} s = Sin (x) z = Cos (s)"
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g (float[p, q] x) => (float[p, q] y, float[p, q] z) {CONSTANTS} {{ {body} }}'
    )
    prepared = request.getfixturevalue(preset).prepare(model)
    for i, shape in enumerate([(8, 6), (4, 2), (4, 6), (1, 2), (3, 5), (2, 2), (16, 8), (2, 1)]):
        x = np.random.default_rng(i).standard_normal(shape, dtype=np.float32)
        np.testing.assert_array_equal(prepared.run([x])[0], x)


@pytest.mark.parametrize("kind", ["BOOL", "INT8", "UINT8", "INT32", "FLOAT16"])
@pytest.mark.parametrize("body", ["m = Concat <axis = 0> (x) y = Cast <to = $to> (m)", "y = Cast <to = $to> (x)"])
def test_of_other_types_too(body: str, kind: str, openvino: type[omb.Preset]) -> None:
    to = onnx.TensorProto.DataType.Value(kind)
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g ({kind.lower()}[p, q] x) => ({kind.lower()}[p, q] y) '
        f"{{ {body.replace('$to', str(to))} }}"
    )
    prepared = openvino.prepare(model)
    for i, shape in enumerate([(8, 6), (4, 2), (1, 2), (3, 5), (2, 2), (16, 8), (2, 1)]):
        x = np.random.default_rng(i).integers(0, 100, shape).astype(onnx.helper.tensor_dtype_to_np_dtype(to))
        np.testing.assert_array_equal(prepared.run([x])[0], x)


@pytest.mark.parametrize("body", ["y = Cast <to = 1> (x)", "m = Mul (x, one) y = Cast <to = 1> (m)"])
def test_of_sizes_that_are_known_nothing_is_kept(body: str, openvino: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g (float[2, 3] x) => (float[2, 3] y) <float one = {{1}}> {{ {body} }}'
    )
    prepared = openvino.prepare(model)
    assert not prepared.adaptations
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    np.testing.assert_array_equal(prepared.run([x])[0], x)


@pytest.mark.parametrize(
    "body", ["y = CastLike (x, like)", "k = Neg (like) y = CastLike (x, k)", "k = Mul (x, one) y = CastLike (k, like)"]
)
@pytest.mark.parametrize("sizes", ["p, q", "2, 3"])
@pytest.mark.parametrize("preset", ["openvino", "openvino_ep", "ort_cpu"])
def test_the_input_that_names_the_type_is_not_the_one_that_is_passed_on(
    preset: str, sizes: str, body: str, request: pytest.FixtureRequest
) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 17]> g (float[{sizes}] x, float16[n] like) => (float16[{sizes}] y, float[{sizes}] z)
        <float one = {{1}}> {{ {body} s = Sin (x) z = Cos (s) }}"""
    )
    prepared = request.getfixturevalue(preset).prepare(model)
    x = np.float32([[1, 2.0002, 3], [4, 5, 6]])
    for like in (np.ones(2, np.float16), np.ones(5, np.float16)):
        (found, _) = prepared.run([x, like])
        assert found.dtype == np.float16
        np.testing.assert_array_equal(found, x.astype(np.float16))
