# SPDX-License-Identifier: Apache-2.0
"""Powers of integers whose exponents, of floating-point numbers or of uint64, are known only when the model runs."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import computed, rewritten
from onnx_multi_backend.adapt.site import Site

_LEAST = -(2**31)
#: Base, exponent, and what ONNX Runtime makes of both in int32: the lowest number for what int32 does not hold.
#: OpenVINO keeps int64 in int32, so that of int64 the first ones have no right result.
BEYOND = ((2, 31.0, _LEAST), (3, 20.0, _LEAST), (46341, 2.0, _LEAST))
CASES = (
    (46340, 2.0, 46340**2),
    (1290, 3.0, 1290**3),
    (-1290, 3.0, -(1290**3)),
    (2**31 - 1, 1.0, 2**31 - 1),
    (-(2**31) + 1, 1.0, -(2**31) + 1),
    (2**24 + 1, 1.0, 2**24 + 1),
    (-2, 31.0, _LEAST),
    (5, -2.0, 0),
    (-1, -3.0, -1),
    (1, -3.0, 1),
    (0, 0.0, 1),
    (0, -1.0, _LEAST),
    (-1, 3e9, 1),
    (0, 3e9, 0),
    (1, np.inf, 1),
    (7, np.inf, _LEAST),
    (7, -np.inf, 0),
    (7, np.nan, _LEAST),
    (1, np.nan, 1),
    (9, 2.5, 243),
    (9, 0.5, 3),
    (8, 0.5, 2),
    (4, -0.5, 0),
    (-9, 2.5, _LEAST),
)


def model(kind: str, given: str) -> ModelProto:
    head = '<ir_version: 10, opset_import: ["": 18]> g '
    return onnx.parser.parse_model(head + f"({kind}[n, 1] x, {given}[n] e) => ({kind}[n, n] y) {{ y = Pow (x, e) }}")


def of_integers(site: Site) -> bool:
    return site.elem_type(site.input(0)) in (TensorProto.INT32, TensorProto.INT64)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.PrecisionWarning")
@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("given", ["float", "double", "float16", "bfloat16"])
def test_a_whole_power_is_exact_on_openvino(openvino: type[omb.Preset], kind: str, given: str) -> None:
    prepared = openvino.prepare(model(kind, given))
    made = np.dtype(prepared.get_inputs()[1].dtype)
    with np.errstate(over="ignore"):
        cases = (*BEYOND, *CASES) if kind == "int32" else CASES
        kept = [c for c in cases if np.isnan(c[1]) or made.type(c[1]) == c[1]]
        numbers = np.array([made.type(case[1]) for case in kept])
    assert len(kept) > 20
    x, right = (np.array([case[i] for case in kept]) for i in (0, 2))
    for n in (len(kept), 1):
        got = prepared.run([x[:n, None].astype(kind), numbers[:n]])[0]
        np.testing.assert_array_equal(np.diag(got), right[:n])


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("given", ["float", "double"])
def test_the_rule_keeps_all_bits_on_an_engine_that_has_them(kind: str, given: str) -> None:
    changed, _ = rewritten(model(kind, given), "Pow", forms=of_integers)
    x = np.array([3, -7, 2, 2**31 - 1, 10, -1, 0, 1])
    e = np.array([0, 1, 2, 3, 13, 18, 22, 39, 62])
    right = x[:, None].astype(object) ** e
    bits = 8 * np.dtype(kind).itemsize
    held = (right >= -(2 ** (bits - 1))) & (right < 2 ** (bits - 1))
    n = max(len(x), len(e))
    pads = np.ones((n, n), object), np.zeros((n, n), bool)
    for pad, values in zip(pads, (right, held), strict=True):
        pad[: len(x), : len(e)] = values
    x, e = (np.resize(v, n) for v in (x, e))
    got = computed(changed, x[:, None].astype(kind), e.astype("float32" if given == "float" else "float64"))[0]
    assert pads[1].sum() > 30
    np.testing.assert_array_equal(got[pads[1]], pads[0][pads[1]].astype(kind))


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_exponents_of_uint64(openvino: type[omb.Preset], kind: str) -> None:
    made = model(kind, "uint64")
    x, e = np.array([3, -7, 2, 46340, -1]), np.array([0, 1, 30, 2, 2**31 - 1], np.uint64)
    right = np.array([1, -7, 2**30, 46340**2, -1])
    got = openvino.prepare(made).run([x[:, None].astype(kind), e])[0]
    np.testing.assert_array_equal(np.diag(got), right)
    changed, _ = rewritten(made, "Pow", forms=of_integers)
    e[-2:] = 2**63, 2**64 - 1
    right[-2:] = 0, -1
    np.testing.assert_array_equal(np.diag(computed(changed, x[:, None].astype(kind), e)[0]), right)


def test_a_constant_is_raised_to_a_power_of_the_run(openvino: type[omb.Preset]) -> None:
    """The squares of the base leave int32 long before the power does."""
    text = '<ir_version: 10, opset_import: ["": 21]> g (float e) => (int64[5] y) <int64[5] x = {12, -4, 19, 2, -1}> { y = Pow (x, e) }'
    prepared = openvino.prepare(onnx.parser.parse_model(text))
    for exponent in (0, 2, 3, 5, 7):
        np.testing.assert_array_equal(
            prepared.run([np.float32(exponent)])[0], np.array([12, -4, 19, 2, -1], np.int64) ** exponent
        )


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_constant_powers_beyond_the_type(preset: type[omb.Preset], kind: str) -> None:
    """Of int32 they are the lowest number, as the engines' own; OpenVINO, which keeps int64 in int32, refuses the element."""
    text = f'<ir_version: 10, opset_import: ["": 18]> g ({kind}[6] x) => ({kind}[6] y) <float[6] e = {{1, 2, 3, 5, 0, -1}}> {{ y = Pow (x, e) }}'
    prepared = preset.prepare(onnx.parser.parse_model(text), fallback="full")
    x = np.array([-7, 73, -70, 73, 9, -1]).astype(kind)
    np.testing.assert_array_equal(prepared.run([x])[0], [-7, 73**2, -(70**3), 73**5, 1, -1])
    x[[2, 3]] = 1974, 80
    if kind == "int64" and preset.name != "OrtCpu":
        with pytest.raises(
            omb.InputError, match="element .2. is 1974.* correct results only for values from -73 to 73"
        ):
            prepared.run([x])
        return
    beyond = (_LEAST, _LEAST) if kind == "int32" else (1974**3, 80**5)
    np.testing.assert_array_equal(prepared.run([x])[0], [-7, 73**2, *beyond, 1, -1])


def test_a_power_of_one_constant_beyond_int32(preset: type[omb.Preset]) -> None:
    text = '<ir_version: 10, opset_import: ["": 18]> g (int32[3] x) => (int32[3] y) <float e = {5}> { y = Pow (x, e) }'
    prepared = preset.prepare(onnx.parser.parse_model(text), fallback="full")
    np.testing.assert_array_equal(prepared.run([np.int32([-73, 80, 2])])[0], [-(73**5), _LEAST, 32])
