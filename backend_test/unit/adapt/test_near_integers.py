# SPDX-License-Identifier: Apache-2.0
"""Integers that float32 does not tell apart: compared, chosen, moved, multiplied and reduced, they come out exact.

On the engines as they are, and with each rule that computes with integers put to work on ONNX Runtime, over the whole range of its
types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import computed, rewritten
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules.integer_comparisons import COMPARED
from onnx_multi_backend.adapt.site import Site

Array = np.ndarray[Any, Any]
_SPECIAL = (0, 1, 2, 2**24, 2**31, 2**53, 2**63)
#: How many elements of each special pair of numbers.
_SHAPE = (4, 6)


class Form(NamedTuple):
    """One node on two tensors of integers, and what it has to give.

    `tame` bounds what it is given where a result would leave the type.
    """

    graph: str
    right: Callable[..., Any]
    opset: int = 18
    tame: int = 0
    only: tuple[str, ...] = ("int32", "int64", "uint32", "uint64")

    def model(self, kind: str) -> ModelProto:
        head = f'<ir_version: 10, opset_import: ["": {self.opset}]> g '
        return onnx.parser.parse_model(head + re.sub(r"\bT\b", kind, self.graph))


def whole(total: Any, count: int) -> Any:
    """The quotient, rounded towards zero."""
    return np.vectorize(lambda n: abs(n) // count * (1 if n >= 0 else -1), otypes=[object])(total)


def power(a: Array, b: Array) -> Array:
    return np.vectorize(lambda x, e: pow(int(x), int(e), 2**64), otypes=[object])(a, b)


def pair(node: str, made: str = "T[a, b]", given: str = "T[a, b] x, T[a, b] y", beside: str = "") -> str:
    return f"({given}) => ({made} z) {beside} {{ z = {node} }}"


SIGNED = ("int32", "int64")
FORMS = {
    "Equal": Form(pair("Equal (x, y)", "bool[a, b]"), np.equal),
    "Less": Form(pair("Less (x, y)", "bool[a, b]"), np.less),
    "LessOrEqual": Form(pair("LessOrEqual (x, y)", "bool[a, b]"), np.less_equal),
    "Greater": Form(pair("Greater (x, y)", "bool[a, b]"), np.greater),
    "GreaterOrEqual": Form(pair("GreaterOrEqual (x, y)", "bool[a, b]"), np.greater_equal),
    "Where": Form("(T[a, b] x, T[a, b] y) => (T[a, b] z) { c = Less (x, y) z = Where (c, x, y) }", np.minimum),
    "Clip": Form(pair("Clip (x, y)", given="T[a, b] x, T y"), lambda x, y: np.maximum(x, y)),
    "Relu": Form(pair("Relu (x)", given="T[a, b] x"), lambda x: np.maximum(x, 0), only=SIGNED),
    "MatMul": Form(
        pair("MatMul (x, y)", given="T[a, b] x, T[b, a] y"), lambda x, y: x.astype(object) @ y.astype(object)
    ),
    "Gemm": Form(
        pair("Gemm <transB = 1, alpha = 2.0, beta = 3.0> (x, y, x)", given="T[a, a] x, T[a, a] y"),
        lambda x, y: 2 * (x.astype(object) @ y.astype(object).T) + 3 * x.astype(object),
    ),
    "Einsum": Form(
        pair('Einsum <equation = "ij,kj->ki"> (x, y)'), lambda x, y: (x.astype(object) @ y.astype(object).T).T
    ),
    "Pow": Form(pair("Pow (x, y)"), power, tame=70, only=SIGNED),
    "Pow of 3": Form(pair("Pow (x, three)", given="T[a, b] x", beside="<T three = {3}>"), lambda x: x * x * x),
    "ReduceSum": Form(pair("ReduceSum <keepdims = 0> (x)", "T", "T[a, b] x"), lambda x: x.astype(object).sum()),
    "ReduceMax": Form(
        pair("ReduceMax <keepdims = 0> (x)", "T", "T[a, b] x"), np.max, only=("int32", "int64", "uint32")
    ),
    "ReduceMin": Form(
        pair("ReduceMin <keepdims = 0> (x)", "T", "T[a, b] x"), np.min, only=("int32", "int64", "uint32")
    ),
    "ReduceL1": Form(
        pair("ReduceL1 <keepdims = 0> (x)", "T", "T[a, b] x"), lambda x: abs(x.astype(object)).sum(), only=SIGNED
    ),
    "ReduceSumSquare": Form(
        pair("ReduceSumSquare <keepdims = 0> (x)", "T", "T[a, b] x"),
        lambda x: (x.astype(object) ** 2).sum(),
        only=SIGNED,
    ),
    "ReduceL2": Form(
        pair("ReduceL2 <keepdims = 0> (x)", "T", "T[a, b] x"),
        lambda x: math.isqrt((x.astype(object) ** 2).sum()),
        tame=2**12,
        only=SIGNED,
    ),
    "ReduceMean": Form(
        pair("ReduceMean <keepdims = 0> (x)", "T", "T[a, b] x"),
        lambda x: whole(x.astype(object).sum(), x.size),
        tame=2**26,
        only=SIGNED,
    ),
    "Trilu": Form(pair("Trilu (x)", given="T[a, b] x"), np.triu),
    "ReverseSequence": Form(
        pair("ReverseSequence (x, n)", given="T[a, b] x", beside="<int64[6] n = {4, 4, 4, 4, 4, 4}>"), np.flipud
    ),
    "Resize": Form(
        pair('Resize <mode = "nearest"> (x, , s)', "T[c, d]", "T[a, b] x", "<float[2] s = {2, 1}>"),
        lambda x: np.repeat(x, 2, 0),
        only=("int32", "int64"),
    ),
    "Shrink": Form(
        pair("Shrink <lambd = 0.5, bias = 0.0> (x)", given="T[a, b] x"), lambda x: x, 19, only=("int32", "int64")
    ),
}
#: What is written with Max, which ONNX Runtime computes wrongly of int64, and which is then written with Less.
BY_MAX = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual")
RULES = [
    pytest.param(name, kind, id=f"{name}-{kind}")
    for name, form in FORMS.items()
    for kind in ("int32", "int64")
    if kind in form.only and not (kind == "int64" and name in BY_MAX)
]


def arrays(kind: str, shapes: list[tuple[int, ...]], tame: int, most: int, seed: int) -> list[Array]:
    """Near pairs of the type's special numbers."""
    rng, info = np.random.default_rng(seed), np.iinfo(kind)
    low, high = max(info.min, -tame or -most), min(info.max, tame or most)
    near = sorted({s * n + d for n in _SPECIAL for s in (1, -1) for d in (-1, 0, 1)} | {low, high, low + 1, high - 1})
    pool = [n for n in near if low <= n <= high]
    first = [pool[i] for i in rng.integers(0, len(pool), math.prod(_SHAPE))]
    second = [min(max(n + int(d), low), high) for n, d in zip(first, rng.integers(-1, 2, len(first)), strict=True)]
    return [np.array(n[: math.prod(s)], kind).reshape(s) for n, s in zip((first, second), shapes, strict=False)]


def cut(value: Any, kind: np.dtype) -> Array:
    """A result of any size in its type's bits."""
    array = np.asarray(value)
    if array.dtype != object:
        return array
    bits = kind.itemsize * 8
    wrapped = np.vectorize(lambda n: int(n) % 2**bits, otypes=[object])(array)
    if kind.kind == "i":
        wrapped = np.vectorize(lambda n: n - 2**bits if n >= 2 ** (bits - 1) else n, otypes=[object])(wrapped)
    return wrapped.astype(kind)


def tried(form: Form, kind: str, most: int) -> list[list[Array]]:
    shapes = {
        "T[a, b] x, T[b, a] y": [_SHAPE, _SHAPE[::-1]],
        "T[a, a] x, T[a, a] y": [(4, 4)] * 2,
        "T[a, b] x, T y": [_SHAPE, ()],
    }
    given = next((s for text, s in shapes.items() if text in form.graph), [_SHAPE] * 2)
    count = form.graph.split("=>")[0].count("T")
    runs = [arrays(kind, given[:count], form.tame, most, seed) for seed in range(6)]
    for values in runs if "Pow (x, y)" in form.graph else []:
        values[1] = abs(values[1])
    return runs


def check(form: Form, run: Callable[[list[Array]], list[Any]], runs: list[list[Array]]) -> None:
    for values in runs:
        with np.errstate(all="ignore"):
            right = cut(form.right(*values), values[0].dtype)
        got = run(values)[0]
        np.testing.assert_array_equal(got, right if right.dtype == bool else right.astype(values[0].dtype))


@pytest.mark.parametrize("name", FORMS)
def test_integers_beyond_float32_are_exact_on_openvino(openvino: type[omb.Preset], name: str) -> None:
    prepared = openvino.prepare(FORMS[name].model("int32"))
    check(FORMS[name], lambda values: list(prepared.run(values)), tried(FORMS[name], "int32", 2**31))


#: Where results of int64 would leave int32, inputs are bounded, so that none does.
WITHIN = (
    "Equal",
    "Less",
    "LessOrEqual",
    "Greater",
    "GreaterOrEqual",
    "Where",
    "Relu",
    "ReduceMax",
    "ReduceMin",
    "Trilu",
)


@pytest.mark.parametrize("name", [*WITHIN, "ReverseSequence", "Resize", "Shrink"])
def test_numbers_of_int64_that_int32_holds_are_exact_on_openvino(openvino: type[omb.Preset], name: str) -> None:
    prepared = openvino.prepare(FORMS[name].model("int64"))
    check(FORMS[name], lambda values: list(prepared.run(values)), tried(FORMS[name], "int64", 2**31 - 1))


@pytest.mark.parametrize(("name", "kind"), RULES)
def test_rules_are_exact_over_the_whole_range(ort_cpu: type[omb.Preset], name: str, kind: str) -> None:
    form = FORMS[name]
    model = form.model(kind)
    operator, given = model.graph.node[-1].op_type, model.graph.input[0].type.tensor_type.elem_type

    def on_large_integers(site: Site) -> bool:
        read = [site.value(n) for n in site.node.input if n and site.elem_type(n) == given]
        small = operator in COMPARED and any(v.within(-(2**23), 2**23) for v in read)
        return bool(read) and not small and GUARDED not in site.node.name

    body, changes = rewritten(model, operator, forms=on_large_integers)
    assert changes
    check(form, lambda values: computed(body, *values), tried(form, kind, 2**64))
