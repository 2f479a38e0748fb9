# SPDX-License-Identifier: Apache-2.0
"""Rules: ensembles of decision trees of ai.onnx.ml.

All rows go down all trees at once, a level at a time: the node that a row has come to tells which element is compared with which threshold,
and where it goes. A leaf goes to itself. What is compared is what ONNX Runtime compares, so that each row comes to the same leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.rules.ml.sites import columns_of, is_ml, rows_of, transformed, winners
from onnx_multi_backend.adapt.site import Body, Site

_FLOAT = TensorProto.FLOAT

#: How a node compares, and the operator of ONNX.
_MODES = {
    "BRANCH_LEQ": "LessOrEqual",
    "BRANCH_LT": "Less",
    "BRANCH_GTE": "GreaterOrEqual",
    "BRANCH_GT": "Greater",
}

#: Deeper ensembles, and ones of more nodes, are not written: each level takes memory for each row and tree.
_DEEPEST, _MOST = 64, 1 << 20
#: The fewest classes.
_CLASSES = 3


@dataclass(frozen=True)
class _Ensemble:
    """Nodes of all trees, in one list.

    Attributes
    ----------
    roots : array of int64, one a tree
    features, lefts, rights : array of int64
        Which element is compared, and the next node where that is true, and where not; a leaf's own number twice.
    thresholds : array of float32
    to_left : array of bool
        Whether NaN counts as true.
    mode : str
        Of all nodes that are no leaves.
    depth : int
    weights : array of float32, nodes by targets
        Of the leaves.
    reaches_all : bool
        Whether each row gets something for every target: some tree's leaves all give to it.
    """

    roots: np.ndarray[Any, Any]
    features: np.ndarray[Any, Any]
    thresholds: np.ndarray[Any, Any]
    lefts: np.ndarray[Any, Any]
    rights: np.ndarray[Any, Any]
    to_left: np.ndarray[Any, Any]
    mode: str
    depth: int
    weights: np.ndarray[Any, Any]
    reaches_all: bool


def tree_ensemble_regressor(site: Site) -> Iterator[ModelProto]:
    """The sum of what the leaves give, and the base values. Source: TreeEnsembleRegressor's documentation."""
    targets, how = site.attribute("n_targets", 1), site.attribute("post_transform", "NONE")
    summed = site.attribute("aggregate_function", "SUM") in ("SUM", "AVERAGE")
    if not is_ml(site, "TreeEnsembleRegressor") or not summed:
        return
    if targets < 1 or (targets == 1 and how != "NONE"):  # of one, ONNX Runtime and the documentation do not agree
        return
    ensemble, base = _read(site, "target", targets), site.attribute("base_values", [])
    body = Body(site)
    rows = rows_of(site, body)
    if ensemble is None or rows is None or len(base) not in (0, targets) or (base and not ensemble.reaches_all):
        return
    scores = _summed(body, ensemble, rows)
    if site.attribute("aggregate_function", "SUM") == "AVERAGE":
        scores = body("Div", scores, body.constant(len(ensemble.roots), _FLOAT))
    if base:
        scores = body("Add", scores, body.constant(np.array(base), _FLOAT))
    result = transformed(body, scores, how)
    if result is not None:
        yield body.finish(result)


def tree_ensemble_classifier(site: Site) -> Iterator[ModelProto]:
    """The sums for each class, and the label of the largest one. Source: TreeEnsembleClassifier's documentation.

    Labels are numbers here. Of two, ONNX Runtime's kernel and the documentation do not agree but for what converters write: leaves that give
    to the first class alone, and mean the second.
    """
    labels = site.attribute("classlabels_int64s", [])
    if not is_ml(site, "TreeEnsembleClassifier"):
        return
    if len(labels) < _CLASSES:
        yield from _of_two(site, labels)
        return
    ensemble, base = _read(site, "class", len(labels)), site.attribute("base_values", [])
    body = Body(site)
    rows = rows_of(site, body)
    if ensemble is None or rows is None or len(base) not in (0, len(labels)):
        return
    if not ensemble.reaches_all and (base or min(site.attribute("class_weights", []), default=0) < 0):
        return  # ONNX Runtime chooses among the classes that a row's leaves give to
    scores = _summed(body, ensemble, rows)
    if base:
        scores = body("Add", scores, body.constant(np.array(base), _FLOAT))
    result = transformed(body, scores, site.attribute("post_transform", "NONE"))
    if result is not None:
        yield body.finish(winners(body, scores, labels), result)


def _of_two(site: Site, labels: list[int]) -> Iterator[ModelProto]:
    """The second class where the sum is large. Source: ONNX Runtime's kernel, measured (1.24 and 1.32)."""
    weights, base = site.attribute("class_weights", []), site.attribute("base_values", [])
    how = site.attribute("post_transform", "NONE")
    if (
        len(labels) != 2
        or set(site.attribute("class_ids", [])) != {0}
        or len(base) > 1
        or how not in ("NONE", "LOGISTIC")
    ):
        return
    ensemble, body = _read(site, "class", 1), Body(site)
    rows = rows_of(site, body)
    if ensemble is None or rows is None or not ensemble.reaches_all:
        return
    are_shares = min(weights) >= 0
    if are_shares and how == "LOGISTIC":  # 1.24 does not transform these
        return
    score = _summed(body, ensemble, rows)
    if base:
        score = body("Add", score, body.constant(np.array(base), _FLOAT))
    is_second = body("Greater", score, body.constant(0.5 if are_shares else 0.0, _FLOAT))
    label = body("Where", is_second, *(body.constant(np.int64(label)) for label in labels[::-1]))
    other = body("Sub", body.constant(1.0, _FLOAT), score) if are_shares else body("Neg", score)
    scores = body("Concat", other, score, axis=1)
    result = body("Sigmoid", scores) if how == "LOGISTIC" else scores
    yield body.finish(body("Squeeze", label, body.ints(1)), result)


def _summed(body: Body, ensemble: _Ensemble, rows: str) -> str:
    """What all trees give to each target of a row."""
    count = len(ensemble.roots)
    first = body.constant(ensemble.roots.reshape(1, count))
    size = body("Concat", body("Shape", rows, start=0, end=1), body.ints(1), axis=0)
    place = body("Expand", first, size)
    tables = {
        name: body.constant(getattr(ensemble, name))
        for name in ("features", "thresholds", "lefts", "rights", "to_left")
    }
    for _ in range(ensemble.depth):
        value = body("GatherElements", rows, body("Gather", tables["features"], place), axis=1)
        goes_left = body(_MODES[ensemble.mode], value, body("Gather", tables["thresholds"], place))
        if ensemble.to_left.any():
            missing = body("And", body("IsNaN", value), body("Gather", tables["to_left"], place))
            goes_left = body("Or", goes_left, missing)
        place = body("Where", goes_left, *(body("Gather", tables[side], place) for side in ("lefts", "rights")))
    given = body("Gather", body.constant(ensemble.weights), place, axis=0)
    return str(body("ReduceSum", given, body.ints(1), keepdims=0))


def _read(site: Site, kind: str, targets: int) -> _Ensemble | None:
    """The ensemble in a node's attributes; None where it is of other modes, of float64, too large, or not sound."""
    if any(attribute.name.endswith("_as_tensor") for attribute in site.node.attribute):
        return None
    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    trees, numbers, features, trues, falses = (np.array(site.attribute(f"nodes_{n}", []), np.int64) for n in names)
    values = np.array(site.attribute("nodes_values", []), np.float32)
    modes = [mode.decode(errors="replace") for mode in site.attribute("nodes_modes", [])]
    count = len(numbers)
    if not count or count > _MOST or {len(part) for part in (trees, features, trues, falses, values, modes)} != {count}:
        return None
    inner = np.array([mode != "LEAF" for mode in modes])
    wanted = {mode for mode in modes if mode != "LEAF"} or {"BRANCH_LEQ"}
    if len(wanted) != 1 or not wanted <= _MODES.keys():
        return None
    at = {pair: place for place, pair in enumerate(zip(trees.tolist(), numbers.tolist(), strict=True))}
    own = np.arange(count)
    next_true, next_false = (
        np.array([at.get((t, n), -1) if i else p for t, n, i, p in zip(trees, where, inner, own, strict=True)])
        for where in (trues, falses)
    )
    found = _weights(site, kind, targets, at, count)
    if min(next_true.min(), next_false.min()) < 0 or found is None or (features[inner] < 0).any():
        return None
    leaves, gives = found
    columns = columns_of(site)
    if columns is None or (inner.any() and features[inner].max() >= columns):
        return None
    reached = np.zeros(count, bool)
    reached[next_true[inner]] = reached[next_false[inner]] = True
    roots = own[~reached]
    first = np.flatnonzero(np.r_[True, trees[1:] != trees[:-1]])  # where ONNX Runtime starts
    if (
        not np.array_equal(roots, first)
        or len(set(trees[roots].tolist())) != len(roots)
        or (depth := _depth(roots, next_true, next_false, inner)) is None
    ):
        return None
    missing = np.array(site.attribute("nodes_missing_value_tracks_true", []) or np.zeros(count), bool)
    if len(missing) != count:
        return None
    features = np.where(inner, features, 0)
    whole = np.logical_and.reduceat(gives | inner[:, None], roots, axis=0)  # a tree goes from its root to the next one
    reaches_all = bool(whole.any(axis=0).all())
    return _Ensemble(
        roots, features, values, next_true, next_false, missing & inner, wanted.pop(), depth, leaves, reaches_all
    )


def _weights(
    site: Site, kind: str, targets: int, at: dict[tuple[int, int], int], count: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
    """What each node gives to each target, and whether it gives anything."""
    names = ("treeids", "nodeids", "ids")
    trees, numbers, ids = (site.attribute(f"{kind}_{name}", []) for name in names)
    weights = site.attribute(f"{kind}_weights", [])
    if not len(trees) == len(numbers) == len(ids) == len(weights) or count * targets > _MOST:
        return None
    made, gives = np.zeros((count, targets), np.float32), np.zeros((count, targets), bool)
    for tree, number, target, weight in zip(trees, numbers, ids, weights, strict=True):
        place = at.get((tree, number))
        if place is None or not 0 <= target < targets:
            return None
        made[place, target] += np.float32(weight)
        gives[place, target] = True
    return made, gives


def _depth(
    roots: np.ndarray[Any, Any], trues: np.ndarray[Any, Any], falses: np.ndarray[Any, Any], inner: np.ndarray[Any, Any]
) -> int | None:
    """How many comparisons there are at most on the way to a leaf; None where they are too many, or go in a circle."""
    level, depth = roots, 0
    while inner[level].any():
        depth += 1
        if depth > _DEEPEST:
            return None
        level = np.unique(np.concatenate([trues[level], falses[level]]))
    return depth
