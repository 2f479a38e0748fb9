# SPDX-License-Identifier: Apache-2.0
"""Models above an engine's limits are brought down where that is exact, and every change is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import computed, rewritten
from onnx_multi_backend.adapt import adapt, limits
from onnx_multi_backend.adapt.same_operator import unchanged
from onnx_multi_backend.engines.ort.limits import OrtLimits
from onnx_multi_backend.models.tensors import WIDER

NEWEST = onnx.defs.onnx_opset_version()
X = np.float32([[-1, 2, 3]])


class Limits(limits.Limits):
    """An engine made up for the test."""

    sure_ir_version = 3

    def __init__(self, ir: int | None = None, opset: int | None = None, narrow: bool = True) -> None:
        self._ir, self._opset, self._narrow = ir, opset, narrow

    def max_ir_version(self) -> int | None:
        return self._ir

    def max_opset(self, domain: str) -> int | None:
        return self._opset if domain == "" else None

    def boundary_type(self, elem_type: int) -> int:
        return elem_type if self._narrow else WIDER.get(elem_type, elem_type)


def newest(made: ModelProto, *, ir: bool = True, opset: bool = True) -> ModelProto:
    if ir:
        made.ir_version = onnx.IR_VERSION
    if opset:
        made.opset_import[0].version = NEWEST
    return made


def test_a_model_within_the_limits_is_left_as_it_is(preset: type[omb.Preset]) -> None:
    assert preset.prepare(models.linear()).adaptations == ()
    assert preset.compatibility(models.linear()).adaptations == ()


def test_the_newest_ir_and_opset_run(preset: type[omb.Preset]) -> None:
    rep = preset.prepare(newest(models.relu()))
    np.testing.assert_array_equal(rep.run(X)[0], np.maximum(X, 0))


def test_the_newest_ir_and_opset_are_brought_down_and_the_changes_are_told(
    preset: type[omb.Preset], limited: Callable[..., None]
) -> None:
    limited()
    rep = preset.prepare(newest(models.relu()))
    np.testing.assert_array_equal(rep.run(X)[0], np.maximum(X, 0))
    if preset.name == "Openvino":  # it reads every version
        assert rep.adaptations == ()
        return
    told = {a.pass_name: a for a in rep.adaptations}
    assert set(told) == {"opset_version", "ir_version"}
    assert told["ir_version"].change == f"IR version {onnx.IR_VERSION} to {OrtLimits().max_ir_version()}"
    assert told["opset_version"].change == f"opset {NEWEST} of ai.onnx to {OrtLimits().max_opset('')}"
    assert "opsets up to" in told["opset_version"].reason
    assert preset.compatibility(newest(models.relu())).adaptations == rep.adaptations


def test_adapt_false_leaves_the_model_to_the_engine(ort_cpu: type[omb.Preset], limited: Callable[..., None]) -> None:
    engine = OrtLimits()
    too_new = {
        "ir.version": (newest(models.relu(), opset=False), engine.max_ir_version() == onnx.IR_VERSION),
        "opset": (newest(models.relu(), ir=False), engine.max_opset("") == NEWEST),
    }
    narrow = [models.tensor(name, elem_type=TensorProto.INT16) for name in "xy"]
    without_kernel = models.one_node("Relu", narrow[:1], narrow[1:])
    limited()
    for words, (made, is_read) in {**too_new, "Relu": (without_kernel, False)}.items():
        assert ort_cpu.prepare(made).adaptations
        assert ort_cpu.is_compatible(made, adapt=False) is is_read
        if is_read:
            assert ort_cpu.prepare(made, adapt=False).adaptations == ()
            continue
        with pytest.raises(omb.UnsupportedModelError, match=f"(?i){words}"):
            ort_cpu.prepare(made, adapt=False)
    assert ort_cpu.prepare(models.relu(), adapt=False).adaptations == ()


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("given", ["relu", "bfloat16", "dropout"])
def test_the_users_proto_is_never_altered(preset: type[omb.Preset], limited: Callable[..., None], given: str) -> None:
    limited()
    made = {
        "relu": lambda: newest(models.relu()),
        "bfloat16": lambda: models.one_node(
            "Cast", [models.tensor("x", elem_type=TensorProto.BFLOAT16)], [models.tensor("y")], to=models.FLOAT
        ),
        "dropout": lambda: newest(models.one_node("Dropout", [models.tensor("x")], [models.tensor("y")])),
    }[given]()
    before = made.SerializeToString(deterministic=True)
    rep = preset.prepare(made, fallback="full")
    x = X.astype(rep.get_inputs()[0].dtype)
    rep.run(x)
    assert made.SerializeToString(deterministic=True) == before


def test_the_same_bytes_are_adapted_the_same_way_each_time(
    ort_cpu: type[omb.Preset], limited: Callable[..., None]
) -> None:
    limited()
    data = newest(models.relu()).SerializeToString()
    assert ort_cpu.prepare(data).adaptations == ort_cpu.prepare(data).adaptations != ()


@pytest.mark.parametrize("neighbour", [False, True], ids=["alone", "beside an unchanged operator"])
def test_an_operator_that_a_newer_opset_changed_is_rewritten(
    ort_cpu: type[omb.Preset], limited: Callable[..., None], neighbour: bool
) -> None:
    """Range changed in 27."""
    limited(opset=26)
    parts = [models.tensor(name, []) for name in ("start", "limit", "delta")]
    nodes = [models.node("Range", [p.name for p in parts], ["r"])]
    nodes.append(models.node("Relu" if neighbour else "Identity", ["r"], ["y"]))
    made = models.model(nodes, parts, [models.tensor("y", ["N"])], opsets={"": 27})
    assert "opset_version" not in {a.pass_name for a in adapt(made, OrtLimits()).changes}
    new, changes = rewritten(made, "Range", forms=lambda site: site.opset >= 27)
    assert [(c.pass_name, c.node) for c in changes] == [("range_type", "Range 'the_Range'")]
    assert new.opset_import[0].version <= 26
    result = computed(new, *[np.array(v, np.float32) for v in (0, 2, 0.5)])[0]
    np.testing.assert_array_equal(result, np.float32([0, 0.5, 1, 1.5]))


def test_lowering_needs_every_operator_unchanged() -> None:
    both = models.model(
        [models.node("Relu", ["x"], ["r"]), models.node("Softmax", ["r"], ["y"])],
        [models.tensor("x")],
        [models.tensor("y")],
    )
    assert [a.pass_name for a in adapt(both, Limits(opset=14)).changes] == ["opset_version"]
    assert adapt(both, Limits(opset=12)).changes == ()  # Softmax changed in 13
    assert adapt(both, Limits(opset=12)).proto is both
    assert [a.pass_name for a in adapt(models.relu(), Limits(opset=14)).changes] == ["opset_version"]


def test_lowering_looks_into_subgraphs() -> None:
    branch = helper.make_graph([helper.make_node("Softmax", ["x"], ["t"])], "b", [], [models.tensor("t")])
    made = models.model(
        [models.node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)],
        [models.tensor("c", [], 9), models.tensor("x")],
        [models.tensor("y")],
    )
    assert adapt(made, Limits(opset=12)).changes == ()


def test_a_local_function_keeps_an_opset_of_its_own(ort_cpu: type[omb.Preset], limited: Callable[..., None]) -> None:
    limited()
    function = helper.make_function(
        "local", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", NEWEST)]
    )
    made = models.model(
        [models.node("Twice", ["x"], ["y"], domain="local")],
        [models.tensor("x")],
        [models.tensor("y")],
        opsets={"": NEWEST, "local": 1},
        ir_version=onnx.IR_VERSION,
        functions=[function],
    )
    rep = ort_cpu.prepare(made)
    np.testing.assert_array_equal(rep.run(X)[0], 2 * X)
    assert {a.pass_name for a in rep.adaptations} == {"opset_version", "ir_version"}


@pytest.mark.parametrize(
    ("operator", "given", "wanted", "same"),
    [
        ("Relu", 20, 14, True),  # one version
        ("Relu", 14, 13, True),  # more types
        ("Softmax", 13, 12, False),  # another meaning
        ("Clip", 11, 6, False),  # attributes became inputs
        ("Gelu", 20, 19, False),  # new
        ("Nonsense", 20, 19, False),
    ],
)
def test_which_operators_mean_the_same_in_two_opsets(operator: str, given: int, wanted: int, same: bool) -> None:
    assert unchanged(operator, "", given, wanted) is same


@pytest.mark.parametrize(
    ("inputs", "wanted", "same"), [(3, 13, True), (4, 13, False), (3, 11, False), (None, 13, False)]
)
def test_a_pad_without_axes_means_the_same_before_there_were_axes(inputs: int | None, wanted: int, same: bool) -> None:
    assert unchanged("Pad", "", 18, wanted, inputs) is same


def test_a_name_that_a_cast_would_take_is_left_to_the_user() -> None:
    made = models.model(
        [models.node("Cast", ["x"], ["x/omb_edge"], to=models.FLOAT), models.node("Neg", ["x/omb_edge"], ["y"])],
        [models.tensor("x", elem_type=TensorProto.BFLOAT16)],
        [models.tensor("y")],
    )
    adapted = adapt(made, Limits(narrow=False))
    onnx.checker.check_model(adapted.proto, full_check=True)
    assert adapted.inputs["x"].engine_name not in ("x", "x/omb_edge", "y")


def test_inserted_casts_count_neither_for_nor_against_a_provider(built_in_ep: type[omb.Preset]) -> None:
    det = models.model(
        [models.node("Cast", ["x"], ["c"], to=models.FLOAT), models.node("Det", ["c"], ["y"])],
        [models.tensor("x", [4, 4], TensorProto.BFLOAT16)],
        [models.tensor("y", [])],
    )
    with pytest.raises(omb.UnsupportedModelError):
        built_in_ep.prepare(det)


def test_openvino_tells_of_the_identities_that_it_needs(openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(models.one_node("Dropout", [models.tensor("x")], [models.tensor("y")]))
    assert {a.pass_name for a in rep.adaptations} <= {"input_identity"}
    np.testing.assert_array_equal(rep.run(X)[0], X)


def test_an_adaptation_reads_as_a_sentence(ort_cpu: type[omb.Preset], limited: Callable[..., None]) -> None:
    limited()
    (told,) = ort_cpu.prepare(newest(models.relu(), opset=False)).adaptations
    limit: Any = OrtLimits().max_ir_version()
    assert str(told) == (
        f"ir_version: IR version {onnx.IR_VERSION} to {limit} (the engine reads IR versions up to {limit})"
    )
