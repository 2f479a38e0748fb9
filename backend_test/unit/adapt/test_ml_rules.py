# SPDX-License-Identifier: Apache-2.0
"""Operators of ai.onnx.ml run on OpenVINO, which has none of them, and give what ONNX Runtime's own kernels give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(0)
X = np.float32([[1, -2, 0.5], [0, 0, 0], [3, 4, -1], [0.5, 0.25, 2]])


def ml(
    op_type: str, outputs: list[tuple[str, int]], *, elem_type: int = FLOAT, rows: Any = "n", **attributes: Any
) -> ModelProto:
    """A model of one node on rows of three columns, or on a vector of three."""
    sizes = [3] if rows is None else [rows, 3]
    node = helper.make_node(op_type, ["x"], [name for name, _ in outputs], domain="ai.onnx.ml", **attributes)
    results = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs]
    return models.model([node], [models.tensor("x", sizes, elem_type)], results, opsets={"ai.onnx.ml": 3})


def agrees(preset: type[omb.Preset], model: ModelProto, x: np.ndarray) -> None:
    pytest.importorskip("onnxruntime")
    ours, right = (p.prepare(model, fallback="full").run([x]) for p in (preset, omb.OrtCpuBackend))
    for one, other in zip(ours, right, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", ["n", 4, None])
@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, -1.0]}),
        ("Scaler", {"offset": [1.0], "scale": [2.0]}),
        ("Binarizer", {"threshold": 0.4}),
        ("Normalizer", {"norm": "L1"}),
        ("Normalizer", {"norm": "L2"}),
        ("Imputer", {"imputed_value_floats": [7.0, 8.0, 9.0], "replaced_value_float": 0.5}),
        ("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": float("nan")}),
    ],
)
def test_features(openvino: type[omb.Preset], op_type: str, attributes: dict[str, Any], rows: Any) -> None:
    x = X if rows is not None else X[0]
    agrees(openvino, ml(op_type, [("y", FLOAT)], rows=rows, **attributes), x)


@pytest.mark.parametrize(
    ("op_type", "attributes"),
    [
        ("Scaler", {"offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, -1.0]}),
        ("Normalizer", {"norm": "L1"}),
        ("Imputer", {"imputed_value_floats": [7.0], "replaced_value_float": float("nan")}),
        ("LinearRegressor", {"coefficients": [1.0, 2.0, -1.0], "intercepts": [0.5], "targets": 1}),
        ("TreeEnsembleRegressor", {"n_targets": 1}),
    ],
)
@pytest.mark.filterwarnings("ignore::onnx_multi_backend.PrecisionWarning")
def test_special_values(openvino: type[omb.Preset], op_type: str, attributes: dict[str, Any]) -> None:
    """NaN, infinities and zeros of both signs, in rows of their own."""
    x = np.float32([[np.nan, 1, 2], [np.inf, 1, 2], [1, -np.inf, 2], [0.0, -0.0, 0.0], [3.4e38, 1e-38, 1]])
    attributes |= trees("target", 1) if "Tree" in op_type else {}
    agrees(openvino, ml(op_type, [("y", FLOAT)], **attributes), x)


def test_features_of_integers(openvino: type[omb.Preset]) -> None:
    model = ml("Scaler", [("y", FLOAT)], elem_type=INT64, offset=[1.0, 2.0, 3.0], scale=[0.5, 2.0, -1.0])
    agrees(openvino, model, np.int64([[1, 2, 3], [-4, 5, 6]]))


@pytest.mark.parametrize("sizes", [["n", 4], [2, "m", 4], [4]])
def test_columns_are_extracted(openvino: type[omb.Preset], sizes: list[Any]) -> None:
    node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")
    given = [models.tensor("x", sizes), models.tensor("i", ["k"], INT64)]
    model = models.model([node], given, [models.tensor("y", None)], opsets={"ai.onnx.ml": 3})
    x = RNG.normal(size=[{"n": 3, "m": 2}.get(size, size) for size in sizes]).astype(np.float32)
    pytest.importorskip("onnxruntime")
    ours, right = (p.prepare(model).run([x, np.int64([2, 0])])[0] for p in (openvino, omb.OrtCpuBackend))
    np.testing.assert_array_equal(ours, right)


def test_features_beside_each_other(openvino: type[omb.Preset]) -> None:
    node = helper.make_node("FeatureVectorizer", ["a", "b"], ["y"], domain="ai.onnx.ml", inputdimensions=[2, 1])
    given = [models.tensor("a", ["n", 2]), models.tensor("b", ["n", 1])]
    model = models.model([node], given, [models.tensor("y", None)], opsets={"ai.onnx.ml": 1})
    assert openvino.prepare(model).run([X[:, :2], X[:, :1]])[0].tolist() == np.hstack([X[:, :2], X[:, :1]]).tolist()


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [7, -3, 20], [5, 9]])
@pytest.mark.parametrize("rows", ["n", None])
def test_linear_models(openvino: type[omb.Preset], labels: list[int], transform: str, rows: Any) -> None:
    weights = {"coefficients": RNG.normal(size=3 * len(labels)), "intercepts": RNG.normal(size=len(labels))}
    x = X if rows is not None else X[0]
    made = ml(
        "LinearClassifier",
        [("label", INT64), ("y", FLOAT)],
        rows=rows,
        classlabels_ints=labels,
        post_transform=transform,
        **weights,
    )
    agrees(openvino, made, x)
    if transform != "LOGISTIC" and len(labels) > 1:  # ONNX Runtime's regressor has another
        agrees(
            openvino,
            ml("LinearRegressor", [("y", FLOAT)], rows=rows, targets=len(labels), post_transform=transform, **weights),
            x,
        )


def trees(
    kind: str, targets: int, *, mode: str = "BRANCH_LEQ", missing: bool = False, least: float = 0.1
) -> dict[str, Any]:
    """The attributes of three trees, of one to seven inner nodes, whose leaves give to every target."""
    rng = np.random.default_rng(targets)
    nodes: dict[str, list[Any]] = {
        n: [] for n in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    }
    leaves: dict[str, list[Any]] = {n: [] for n in ("treeids", "nodeids", "ids", "weights")}
    for tree, levels in enumerate((1, 2, 3)):
        inner = 2**levels - 1
        for number in range(2 * inner + 1):
            leaf = number >= inner
            row = (tree, number, int(rng.integers(3)), float(rng.normal()), "LEAF" if leaf else mode)
            following = (0, 0) if leaf else (2 * number + 1, 2 * number + 2)
            for name, value in zip(nodes, (*row, *following), strict=True):
                nodes[name].append(value)
            for target in range(targets) if leaf else ():
                for name, value in zip(leaves, (tree, number, target, float(rng.uniform(least, 1))), strict=True):
                    leaves[name].append(value)
    made = {f"nodes_{name}": values for name, values in nodes.items()} | {
        f"{kind}_{name}": values for name, values in leaves.items()
    }
    return made | ({"nodes_missing_value_tracks_true": [1] * len(nodes["treeids"])} if missing else {})


@pytest.mark.parametrize("mode", ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"])
@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("rows", ["n", 40])
def test_trees_of_numbers(openvino: type[omb.Preset], targets: int, mode: str, rows: Any) -> None:
    x = np.random.default_rng(5).normal(size=(40, 3)).astype(np.float32)
    model = ml(
        "TreeEnsembleRegressor",
        [("y", FLOAT)],
        rows=rows,
        n_targets=targets,
        base_values=[0.25] * targets,
        **trees("target", targets, mode=mode),
    )
    agrees(openvino, model, x)


def test_missing_values_go_where_the_tree_says(openvino: type[omb.Preset]) -> None:
    x = np.random.default_rng(6).normal(size=(20, 3)).astype(np.float32)
    x[::3, 1] = np.nan
    for missing in (True, False):
        agrees(
            openvino, ml("TreeEnsembleRegressor", [("y", FLOAT)], n_targets=1, **trees("target", 1, missing=missing)), x
        )


def classifier(labels: list[int], transform: str = "NONE", **attributes: Any) -> ModelProto:
    """Trees of classes."""
    outputs = [("label", INT64), ("y", FLOAT)]
    return ml("TreeEnsembleClassifier", outputs, classlabels_int64s=labels, post_transform=transform, **attributes)


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC"])
@pytest.mark.parametrize("labels", [[0, 1, 2], [4, -7, 30]])
@pytest.mark.parametrize("least", [0.01, -1.0])
def test_trees_of_classes(openvino: type[omb.Preset], labels: list[int], transform: str, least: float) -> None:
    x = np.random.default_rng(7).normal(size=(40, 3)).astype(np.float32)
    agrees(openvino, classifier(labels, transform, **trees("class", len(labels), least=least)), x)


def test_what_is_not_written_is_refused(openvino: type[omb.Preset]) -> None:
    """Two classes, to both of which leaves give: ONNX Runtime's label is not that of the larger sum."""
    attributes = trees("class", 2)
    model = ml("TreeEnsembleClassifier", [("label", INT64), ("y", FLOAT)], classlabels_int64s=[0, 1], **attributes)
    with pytest.raises(omb.UnsupportedModelError, match="TreeEnsembleClassifier"):
        openvino.prepare(model)


@pytest.mark.parametrize(
    "model",
    [
        ml("LinearRegressor", [("y", FLOAT)], targets=0, coefficients=[1.0, 2.0, 3.0]),
        ml("LinearRegressor", [("y", FLOAT)], coefficients=[1.0, 2.0, 3.0], post_transform="LOGISTIC"),
        ml("TreeEnsembleRegressor", [("y", FLOAT)], n_targets=-1, **trees("target", 1)),
        ml("TreeEnsembleRegressor", [("y", FLOAT)], elem_type=TensorProto.DOUBLE, n_targets=1, **trees("target", 1)),
        ml("Scaler", [("y", FLOAT)], elem_type=TensorProto.DOUBLE, offset=[2.0**24], scale=[1.0]),
    ],
    ids=["no target", "one target, transformed", "fewer than none", "float64 compared", "float64 scaled"],
)
def test_what_would_come_out_otherwise_is_refused(openvino: type[omb.Preset], model: ModelProto) -> None:
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(model)


def test_a_class_that_no_leaf_gives_to_wins_nothing(openvino: type[omb.Preset]) -> None:
    """ONNX Runtime chooses among those that the leaves of a row give to."""
    attributes = trees("class", 3, least=-1.0)
    kept = [place for place, target in enumerate(attributes["class_ids"]) if target != 1]
    attributes |= {
        name: [values[place] for place in kept] for name, values in attributes.items() if name.startswith("class_")
    }
    model = ml("TreeEnsembleClassifier", [("label", INT64), ("y", FLOAT)], classlabels_int64s=[0, 1, 2], **attributes)
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(model)


@pytest.mark.parametrize("base", [[], [0.3]], ids=["no base", "base"])
@pytest.mark.parametrize("labels", [[0, 1], [5, -9]])
@pytest.mark.parametrize(("least", "transform"), [(0.0, "NONE"), (-1.0, "NONE"), (-1.0, "LOGISTIC")])
def test_trees_of_two_classes(
    openvino: type[omb.Preset], labels: list[int], transform: str, least: float, base: list[float]
) -> None:
    """As converters write them: leaves give to the first class, and mean the second."""
    x = np.random.default_rng(8).normal(size=(60, 3)).astype(np.float32)
    attributes = trees("class", 1, least=least)
    attributes["class_weights"] = [weight / 3 for weight in attributes["class_weights"]]
    attributes["class_weights"][0] = least / 3
    model = classifier(labels, transform, **({"base_values": base} if base else {}), **attributes)
    agrees(openvino, model, x)
    assert len(set(openvino.run_model(model, [x])[0].tolist())) == 2


def chain(*operators: dict[str, Any], elem_type: int = FLOAT) -> ModelProto:
    """Operators one behind the other; the last one's first output, and all that it has more, are results."""
    nodes, read = [], "x"
    for place, attributes in enumerate(operators):
        name, outputs = attributes.pop("op_type"), attributes.pop("outputs", 1)
        made = [f"v{place}", *(f"w{place}" for _ in range(outputs - 1))]
        domain = "" if name in ("Sub", "MatMul") else "ai.onnx.ml"
        inputs = [read, *attributes.pop("more", [])]
        nodes.append(helper.make_node(name, inputs, made, domain=domain, **attributes))
        read = made[-1]
    results = [
        helper.make_tensor_value_info(name, kind, None)
        for name, kind in zip(nodes[-1].output, (INT64, FLOAT)[-outputs:], strict=True)
    ]
    constants = {"mean": np.float32([1, 2, 3]), "axes": np.float32([[1, 0], [0.5, 1], [-1, 1]])}
    return models.model(
        nodes, [models.tensor("x", ["n", 3], elem_type)], results, initializers=constants, opsets={"ai.onnx.ml": 3}
    )


def test_what_reads_their_results(openvino: type[omb.Preset]) -> None:
    """A scaler, a principal component analysis and a linear model, as of scikit-learn's pipelines: onnx infers no shapes behind the scaler."""
    model = chain(
        {"op_type": "Scaler", "offset": [1.0, 2.0, 3.0], "scale": [0.5, 2.0, -1.0]},
        {"op_type": "Sub", "more": ["mean"]},
        {"op_type": "MatMul", "more": ["axes"]},
        {
            "op_type": "LinearClassifier",
            "outputs": 2,
            "coefficients": [1.0, -1.0, 0.5, 2.0, 0.25, 1.0],
            "intercepts": [0.0, 0.1, 0.2],
            "classlabels_ints": [0, 1, 2],
        },
    )
    agrees(openvino, model, X)
    trees_first = chain(
        {"op_type": "TreeEnsembleRegressor", "n_targets": 3, **trees("target", 3)},
        {"op_type": "Normalizer", "norm": "L2"},
        {"op_type": "LinearRegressor", "targets": 1, "coefficients": [1.0, 2.0, 3.0]},
    )
    agrees(openvino, trees_first, X)


@pytest.mark.parametrize(
    ("elem_type", "x"),
    [(INT64, np.int64([[0, 3, 7], [-5, 8, 3]])), (FLOAT, np.float32([[0, 3.9, 7], [np.nan, np.inf, -0.5]]))],
)
def test_categories_as_columns(openvino: type[omb.Preset], elem_type: int, x: np.ndarray) -> None:
    agrees(openvino, ml("OneHotEncoder", [("y", FLOAT)], elem_type=elem_type, cats_int64s=[3, 0, 8], zeros=1), x)


def test_unknown_categories_that_are_an_error_are_refused(openvino: type[omb.Preset]) -> None:
    model = ml("OneHotEncoder", [("y", FLOAT)], elem_type=INT64, cats_int64s=[3, 0, 8], zeros=0)
    with pytest.raises(omb.UnsupportedModelError, match="OneHotEncoder"):
        openvino.prepare(model)


@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize("to", [FLOAT, INT64])
@pytest.mark.parametrize("of", [FLOAT, INT64])
def test_labels(openvino: type[omb.Preset], of: int, to: int, default: bool) -> None:
    names = {FLOAT: "floats", INT64: "int64s"}
    numbers: dict[int, Any] = {FLOAT: [0.5, -1.0, 3.0], INT64: [4, -1, 3]}
    attributes: dict[str, Any] = {f"keys_{names[of]}": numbers[of], f"values_{names[to]}": numbers[to]}
    if default:
        attributes["default_float" if to == FLOAT else "default_int64"] = 77.0 if to == FLOAT else 77
    x = np.array([[*numbers[of]], [3, 9, -1]], np.float32 if of == FLOAT else np.int64)
    agrees(openvino, ml("LabelEncoder", [("y", to)], elem_type=of, **attributes), x)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_what_the_cpu_computes_is_left_as_it_is(openvino_ep: type[omb.Preset]) -> None:
    """A classifier of named labels: nothing is gained by giving it float64."""
    names = {"classlabels_strings": ["a", "b", "c"], "intercepts": [0.0, 0.1, 0.2]}
    model = ml("LinearClassifier", [("label", TensorProto.STRING), ("y", FLOAT)], coefficients=[1.0] * 9, **names)
    prepared = openvino_ep.prepare(model, fallback="full")
    assert [n.op_type for n in prepared.placement()] == ["LinearClassifier"]
    assert not [change for change in prepared.adaptations if change.pass_name == "widen_types"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"default_tensor": helper.make_tensor("t", INT64, [1], [42]), "keys_int64s": [1, 2], "values_int64s": [3, 4]},
        {"keys_floats": [1e-40, 1.0], "values_int64s": [3, 4]},
    ],
    ids=["a default of a tensor", "a denormal key"],
)
def test_labels_that_are_not_written(openvino: type[omb.Preset], attributes: dict[str, Any]) -> None:
    kind = FLOAT if "keys_floats" in attributes else INT64
    model = ml("LabelEncoder", [("y", INT64)], elem_type=kind, **attributes)
    model.opset_import[-1].version = 4
    with pytest.raises(omb.UnsupportedModelError, match="LabelEncoder"):
        openvino.prepare(model)
