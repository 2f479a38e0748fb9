# SPDX-License-Identifier: Apache-2.0
"""Recurrent cells that are written out, and what is nearly one: OpenVINO made a GRU or LSTM cell of it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import Array, floats, parsed

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _with_weights(text: str, **weights: Array) -> onnx.ModelProto:
    model = parsed(text)
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    return model


#: By name: what the cell multiplies by r and by z, what it joins with the former, and the 1 that z is subtracted from.
GRUS = {
    "a cell": ("h", "h", "x", 1.0),
    "another constant": ("h", "h", "x", 2.0),
    "another state reset": ("k", "h", "x", 1.0),
    "another state updated": ("h", "k", "x", 1.0),
    "another input joined": ("h", "h", "u", 1.0),
}


@pytest.mark.parametrize("form", GRUS)
def test_gru(preset: type[omb.Preset], form: str) -> None:
    reset, updated, joined, one = GRUS[form]
    w, v = floats(8, 7), floats(4, 7)
    model = _with_weights(
        f"""(float[2, 3] x, float[2, 4] h, float[2, 4] k, float[2, 3] u) => (float[2, 4] y) <float one = {{{one}}}> {{
        c = Concat <axis = 1> (x, h) g = Gemm <transB = 1> (c, w) s = Sigmoid (g) r, z = Split <axis = 1> (s) m = Mul (r, {reset})
        d = Concat <axis = 1> ({joined}, m) e = Gemm <transB = 1> (d, v) n = Tanh (e) q = Sub (one, z) a = Mul (q, n)
        b = Mul (z, {updated}) y = Add (a, b) }}""",
        w=w,
        v=v,
    )
    feeds = {"x": floats(2, 3), "h": floats(2, 4), "k": -floats(2, 4), "u": -floats(2, 3)}
    gates = _sigmoid(np.concatenate([feeds["x"], feeds["h"]], 1) @ w.T)
    r, z = gates[:, :4], gates[:, 4:]
    new = np.tanh(np.concatenate([feeds[joined], r * feeds[reset]], 1) @ v.T)
    prepared = preset.prepare(model, fallback="full")
    np.testing.assert_allclose(prepared.run(feeds)[0], (one - z) * new + z * feeds[updated], atol=1e-5)
    if form == "a cell":
        assert "cells_apart" not in {change.pass_name for change in prepared.adaptations}


def _lstm(number: int, hidden: str, cell: str, order: str) -> str:
    i, c, f, o = (f"p{number}{order.index(gate)}" for gate in "icfo")
    n = number
    return f"""j{n} = Concat <axis = 1> (x, {hidden}) m{n} = MatMul (j{n}, w) t{n} = Add (m{n}, b) p{n}0, p{n}1, p{n}2, p{n}3 = Split <axis = 1> (t{n})
    i{n} = Sigmoid ({i}) g{n} = Tanh ({c}) a{n} = Add ({f}, one) f{n} = Sigmoid (a{n}) o{n} = Sigmoid ({o}) e{n} = Mul (i{n}, g{n})
    k{n} = Mul (f{n}, {cell}) C{n} = Add (e{n}, k{n}) s{n} = Tanh (C{n}) H{n} = Mul (s{n}, o{n})"""


#: By name: in which order the gates lie, and the cell state that a second step begins with.
LSTMS = {
    "a cell": ("icfo", None),
    "gates in another order": ("ocfi", None),
    "two steps": ("icfo", "C0"),
    "two steps from one cell state": ("icfo", "c"),
}


@pytest.mark.parametrize("form", LSTMS)
def test_lstm(preset: type[omb.Preset], form: str) -> None:
    order, again = LSTMS[form]
    w, b = floats(7, 16), floats(16)
    nodes = _lstm(0, "h", "c", order) + (_lstm(1, "H0", again, order) if again else "")
    model = _with_weights(
        f"""(float[2, 3] x, float[2, 4] h, float[2, 4] c) => (float[2, 4] y) <float one = {{1}}> {{
        {nodes} y = Neg (H{1 if again else 0}) }}""",
        w=w,
        b=b,
    )
    x, h, c = floats(2, 3), floats(2, 4), -floats(2, 4)

    def step(h: Array, c: Array) -> tuple[Array, Array]:
        parts = np.split(np.concatenate([x, h], 1) @ w + b, 4, axis=1)
        i, new, f, o = (parts[order.index(gate)] for gate in "icfo")
        cell = _sigmoid(i) * np.tanh(new) + _sigmoid(f + 1) * c
        return np.tanh(cell) * _sigmoid(o), cell

    right, cell = step(h, c)
    if again:
        right, _ = step(right, cell if again == "C0" else c)
    prepared = preset.prepare(model, fallback="full")
    np.testing.assert_allclose(prepared.run([x, h, c])[0], -right, atol=1e-5)
    if form in ("a cell", "two steps"):
        assert "cells_apart" not in {change.pass_name for change in prepared.adaptations}


@pytest.mark.parametrize("node", ["a{n} = Add (a{o}, a{o})", "a{n} = Add (a{o}, one)"])
def test_many_sums_behind_a_gate(openvino: type[omb.Preset], node: str) -> None:
    """They are not followed for ever."""
    sums = " ".join(node.format(n=n, o=n - 1) for n in range(1, 41))
    model = _with_weights(
        f"""(float[2, 3] x, float[2, 4] h) => (float[2, 4] y) <float one = {{1}}> {{
        j = Concat <axis = 1> (x, h) t = MatMul (j, w) a0, b, c, d = Split <axis = 1> (t) {sums} i = Sigmoid (a40) e = Tanh (b) y = Mul (i, e) }}""",
        w=floats(7, 16),
    )
    assert openvino.prepare(model).run([floats(2, 3), floats(2, 4)])[0].shape == (2, 4)
