# SPDX-License-Identifier: Apache-2.0
"""Where a form is wrong: by the OpenVINO that computes it, by what is known of it, and around whole graphs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx.defs
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.rules import RULES
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines.defect import Only, Several, find
from onnx_multi_backend.engines.openvino import defects
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.graph_walk import all_nodes

X = np.random.default_rng(2).normal(size=(4, 3)).astype(np.float32)


def parsed(graph: str, opset: int = 18) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {graph}')


def test_the_release_inside_counts_where_one_is_given() -> None:
    when = {"openvino": "<2026"}
    assert applies(when, inside={"openvino": "2025.4.1"})
    assert not applies(when, inside={"openvino": "2026.4.1"})


def test_the_first_defect_that_holds_counts() -> None:
    site = Site(models.relu())
    both = Several((Only({"openvino": ">=2026"}, lambda site: Defect("new")), lambda site: Defect("any")))
    found = [find(both, site, {"openvino": release}) for release in ("2025.4.1", "2026.4.1")]
    assert [defect.words for defect in found if defect] == ["any", "new"]


@pytest.mark.parametrize(
    ("graph", "opset"),
    [
        ("(float[a, b] x) => (float[a, b] y) { y = Softmax <axis = 0> (x) }", 13),
        ("(float[a, b] x) => (float[2, b] y) <int64[2] i = {0, -1}> { y = Gather (x, i) }", 13),
        ("(float[a, b] x) => (int64 y) <int64 i = {1}> { s = Shape (x) y = Gather (s, i) }", 13),
    ],
)
def test_ordinary_models_are_not_looked_into(graph: str, opset: int) -> None:
    """Inference costs more than all else that is done before an engine gets a model."""
    model = parsed(graph, opset)
    assert not any(defects.may_have_defect(node, Facts(model)) for node in all_nodes(model))


@pytest.mark.parametrize("index", [5, -4])
def test_constant_indices_beyond_the_data_are_refused(openvino: type[omb.Preset], index: int) -> None:
    model = parsed(f"(float[3] x) => (float[1] y) <int64[1] i = {{{index}}}> {{ z = Exp (x) y = Gather (z, i) }}")
    with pytest.raises(omb.UnsupportedModelError, match=r"Gather.*beyond the data"):
        openvino.prepare(model)
    assert openvino.prepare(model, adapt=False)


@pytest.mark.parametrize(
    "casts",
    [
        "y = Cast <to = 10> (n) c = Cast <to = 1> (y)",
        "y = Cast <to = 10> (n) c0 = Cast <to = 1> (y) c = Identity (c0)",
        "y0 = Cast <to = 10> (n) y = Identity (y0) c = Cast <to = 1> (y0)",
    ],
)
@pytest.mark.parametrize("order", ["float[4, 3] c, float16[4, 3] y", "float16[4, 3] y, float[4, 3] c"])
def test_a_narrow_output_that_is_widened_again_is_written(
    openvino_ep: type[omb.Preset], casts: str, order: str
) -> None:
    prepared = openvino_ep.prepare(parsed(f"(float[4, 3] x) => ({order}) {{ n = Neg (x) {casts} }}"))
    for x in (X, X * 2, X):
        made = prepared.run(x)
        np.testing.assert_array_equal(made["y"], (-x).astype(np.float16))
        np.testing.assert_allclose(made["c"], -x, rtol=1e-3)  # OpenVINO keeps float16 within a model in float32
    assert any("Max" in change.change for change in prepared.adaptations)


def test_a_narrow_output_by_itself_is_left_alone(openvino_ep: type[omb.Preset]) -> None:
    model = parsed("(float[4, 3] x) => (float16[4, 3] y) { n = Neg (x) m = Exp (n) y = Cast <to = 10> (m) }")
    assert model.graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT16
    assert openvino_ep.prepare(model).adaptations == ()


def test_a_layer_that_openvino_writes_as_a_loop_is_left_alone(openvino: type[omb.Preset]) -> None:
    """With clip there is no layer of OpenVINO's own, and the lengths are heeded."""
    w, r = (np.random.default_rng(3).normal(size=(1, 9, n)).astype(np.float32) for n in (4, 3))
    node = models.node("GRU", ["x", "w", "r", "", "l"], ["", "h"], hidden_size=3, clip=0.5)
    inputs = [models.tensor("x", ["t", 2, 4]), models.tensor("l", [2], TensorProto.INT32)]
    model = models.model([node], inputs, [models.tensor("h", [1, 2, 3])], initializers={"w": w, "r": r})
    prepared = openvino.prepare(model)
    assert prepared.adaptations == ()
    x = np.random.default_rng(4).normal(size=(5, 2, 4)).astype(np.float32)
    pytest.importorskip("onnxruntime")
    right = omb.OrtCpuBackend.prepare(model)
    for lengths in ([5, 2], [1, 4], [5, 2]):
        feeds = [x, np.int32(lengths)]
        np.testing.assert_allclose(prepared.run(feeds)[0], right.run(feeds)[0], rtol=1e-4, atol=1e-5)


PAGE = Path(__file__).parents[3] / "docs" / "wrong-forms.md"


def test_the_page_has_every_operator_and_names_rules_and_passes() -> None:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in PAGE.read_text("utf-8").splitlines() if "|" in line
    ]
    rows = rows[2:]
    assert {len(row) for row in rows} == {4}
    told = {operator for row in rows for operator in row[0].split(", ")}
    assert not defects.DEFECTS.keys() - told
    assert all(operator in ("any", "Reduce*") or onnx.defs.has(operator) for operator in told)
    answers = {name for row in rows for name in re.findall(r"`(\w+)`", row[3])}
    assert answers <= {rule.__name__ for rule in RULES} | {
        *(
            "carried_types",
            "default_limits",
            "idle_casts",
            "mend_frontend",
            "one_bound",
            "empty_constants",
            "reduced_alone",
            "low_precision",
            "left_to_cpu",
            "operands_doubled",
            "groups_apart",
            "vector_products",
            "products_turned",
            "results_apart",
            "parts_apart",
            "cells_apart",
            "indices_apart",
            "reversals_apart",
            "activations_apart",
            "matrices_apart",
            "sequences_apart",
            "places_apart",
            "elements_apart",
            "spaces_apart",
            "slopes_apart",
            "turned_before_reductions",
        ),
        *(
            "unsigned_activations",
            "channel_order",
            "axes_moved",
            "states_apart",
            "layers_apart",
            "broadcast_axes",
            "broadcasts_apart",
            "signs_told",
        ),
        *(
            "quantized_operators",
            "lstm_steps",
            "channels_apart",
            "biases_added",
            "choices_apart",
            "half_divisors",
            "weights_apart",
            "constants_apart",
            "factors_apart",
            "gathers_apart",
        ),
        *(
            "rows_apart",
            "epsilons_kept",
            "limits_apart",
            "pointwise_apart",
            "maxima_apart",
            "run_first",
            "results_apart",
            "short_rows_apart",
            "filters_apart",
            "filters_summed_apart",
            "lookalikes_apart",
            "casts_kept",
            "convolutions_apart",
            "norms_apart",
            "scales_kept",
            "pairs_apart",
            "vectors_apart",
            "plain_forms",
            "weights_cast_apart",
            "nothing_guarded",
        ),
        *(
            "reductions_apart",
            "attention_outputs",
            "half_attentions",
            "sums_kept",
            "terms_exact",
            "growth_apart",
            "axes_counted_apart",
            "constant_keys",
            "flags",
            "queries_kept",
            "pads_apart",
            "joined_extremes",
            "means_apart",
            "terms_apart",
            "columns_apart",
            "insertions_apart",
            "axes_given_before",
            "empty_results",
            "scales_of_zeros",
        ),
    }
