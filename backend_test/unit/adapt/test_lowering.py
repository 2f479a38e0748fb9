# SPDX-License-Identifier: Apache-2.0
"""Nodes are rewritten wherever they stand, and only where the engine lacks them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import Picky, computed, expected, rewritten
from onnx_multi_backend.adapt import adapt
from onnx_multi_backend.adapt.lowering import lower
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.adapt.single_node import reads
from onnx_multi_backend.models.graph_walk import all_nodes

pytest.importorskip("onnxruntime")
X = np.float32([[-2, -0.5, 0], [0.5, 1, 4]])


def parse(text: str, opset: int = 20) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}, "local": 1]> {text}')


def test_in_both_branches_of_an_if_that_read_values_from_outside() -> None:
    model = parse("""g (bool c, float[2, 3] x) => (float[2, 3] y) {
        a = Abs(x)
        y = If (c) <then_branch = t () => (float[2, 3] p) { p = Celu(a) }, else_branch = e () => (float[2, 3] q) { q = Celu(x) }>
    }""")
    new, changes = rewritten(model, "Celu")
    assert [c.pass_name for c in changes] == ["special_values", "special_values"]
    for c in (True, False):
        np.testing.assert_allclose(computed(new, np.array(c), X)[0], expected(model, np.array(c), X)[0], rtol=1e-6)


def test_in_the_body_of_a_loop() -> None:
    model = parse("""g (int64 n, float[2, 3] x) => (float[2, 3] y) {
        on = Constant <value = bool {1}> ()
        y = Loop (n, on, x) <body = b (int64 i, bool go, float[2, 3] v) => (bool again, float[2, 3] w) {
            again = Identity(go)
            h = HardSwish(v)
            w = Add(h, x)
        }>
    }""")
    new, _ = rewritten(model, "HardSwish")
    np.testing.assert_allclose(computed(new, np.int64(3), X)[0], expected(model, np.int64(3), X)[0], rtol=1e-6)


def test_in_a_local_function() -> None:
    model = parse("""g (float[2, 3] x) => (float[2, 3] y) { y = local.twice(x) }
        <domain: "local", opset_import: ["": 20]> twice (a) => (c) { b = Celu(a) c = Celu(b) }""")
    new, _ = rewritten(model, "Celu")
    assert not new.functions
    np.testing.assert_allclose(computed(new, X)[0], expected(model, X)[0], rtol=1e-6)


def test_a_scan_whose_body_reads_values_from_outside() -> None:
    model = parse("""g (float[2, 3] x, float[3] bias) => (float[3] last, float[2, 3] all) {
        zero = Constant <value = float[3] {0, 0, 0}> ()
        two = Constant <value = float {2}> ()
        last, all = Scan (zero, x) <num_scan_inputs = 1, body = b (float[3] s, float[3] v) => (float[3] t, float[3] out) {
            m = Mul(v, two)
            u = Add(s, m)
            t = Add(u, bias)
            out = Identity(t)
        }>
    }""")
    # A Scan that captures is refused; the rewritten one captures nothing.
    new, changes = rewritten(model, "Scan", forms=lambda site: len(reads(site.node)) > len(site.node.input))
    assert [c.pass_name for c in changes] == ["scan_captures"]
    bias = np.float32([1, 2, 3])
    for one, other in zip(computed(new, X, bias), expected(model, X, bias), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_names_of_the_model_are_kept_apart_from_those_put_in() -> None:
    model = models.model(
        [
            models.node("Celu", ["x"], ["i0"]),
            models.node("Celu", ["i0"], ["y/omb1/v1"]),
            models.node("Add", ["i0", "y/omb1/v1"], ["y"]),
        ],
        [models.tensor("x", [2, 3])],
        [models.tensor("y", [2, 3])],
    )
    new, _ = rewritten(model, "Celu")
    names = [name for node in all_nodes(new) for name in node.output]
    assert len(set(names)) == len(names)
    np.testing.assert_allclose(computed(new, X)[0], expected(model, X)[0], rtol=1e-6)


def test_what_no_rule_can_express_is_left_alone() -> None:
    model = models.one_node("Erf", [models.tensor("x", [2, 3])], [models.tensor("y", [2, 3])])
    engine = Picky(["Erf"])
    assert list(lower(adapt(model, engine.limits), engine)) == []


def test_the_users_model_is_never_altered() -> None:
    model = models.one_node("Celu", [models.tensor("x", [2, 3])], [models.tensor("y", [2, 3])])
    before = model.SerializeToString(deterministic=True)
    rewritten(model, "Celu")
    assert model.SerializeToString(deterministic=True) == before


def test_nothing_is_rewritten_without_leave(ort_cpu: type[omb.Preset]) -> None:
    """ONNX Runtime has no Relu of int16."""
    elem_type = onnx.TensorProto.INT16
    model = models.one_node("Relu", [models.tensor("x", [3], elem_type)], [models.tensor("y", [3], elem_type)])
    prepared = ort_cpu.prepare(model)
    assert {a.pass_name for a in prepared.adaptations} == {"expand_function"}
    np.testing.assert_array_equal(prepared.run(np.int16([-(2**15), 0, 3]))[0], [0, 0, 3])
    with pytest.raises(omb.UnsupportedModelError):
        ort_cpu.prepare(model, adapt=False)


def test_an_invalid_model_is_told_and_not_rewritten(ort_cpu: type[omb.Preset]) -> None:
    model = models.one_node(
        "Add",
        [models.tensor("x", [2, 3]), models.tensor("w", [2, 3], onnx.TensorProto.INT64)],
        [models.tensor("y", [2, 3])],
    )
    with pytest.raises(omb.InvalidModelError):
        ort_cpu.prepare(model)


def test_weights_in_another_file_stay_there(
    ort_cpu: type[omb.Preset], limited: Callable[..., None], tmp_path: Path
) -> None:
    limited()
    weight = np.random.default_rng(0).normal(size=(3, 500)).astype(np.float32)
    model = models.model(
        [models.node("MatMul", ["x", "w"], ["m"]), models.node("Mod", ["m", "x0"], ["y"])],
        [models.tensor("x", [2, 3]), models.tensor("x0", [])],
        [models.tensor("y", [2, 500])],
        initializers={"w": weight},
        opsets={"": 28},
        ir_version=12,
    )
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    prepared = ort_cpu.prepare(path)
    assert "floor_mod" in {a.pass_name for a in prepared.adaptations}
    np.testing.assert_allclose(prepared.run([X, np.float32(2)])[0], np.mod(X @ weight, 2), rtol=1e-3, atol=1e-4)


def test_a_local_function_runs_on_an_engine_that_reads_none(engine: type[omb.Preset]) -> None:
    model = parse("""g (float[2, 3] x) => (float[2, 3] y) { y = local.twice(x) }
        <domain: "local", opset_import: ["": 20]> twice (a) => (c) { c = Add(a, a) }""")
    prepared = engine.prepare(model)
    assert [a.pass_name for a in prepared.adaptations] == (["inline_functions"] if engine.name == "Openvino" else [])
    np.testing.assert_array_equal(prepared.run(X)[0], X + X)


def test_a_constant_operand_of_an_old_model_costs_no_hope(
    ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Below IR 4 an initializer has to be an input: a node that is asked about alone, with a constant, has none."""
    lost: list[str] = []
    monkeypatch.setattr(Patience, "lose", lambda self, operator="": lost.append(operator))
    model = models.model(
        [
            models.node("Constant", [], ["c"], value=onnx.numpy_helper.from_array(np.float32([[2, 3]]))),
            models.node("Mul", ["c", "x"], ["m"]),
            models.node("Sub", ["x", "m"], ["y"]),
        ],
        [models.tensor("x", [1, 2])],
        [models.tensor("y", [1, 2])],
        opsets={"": 6},
        ir_version=3,
    )
    x = np.float32([[1, 5]])
    np.testing.assert_array_equal(ort_cpu.prepare(model).run([x])[0], x - x * np.float32([[2, 3]]))
    assert not lost
