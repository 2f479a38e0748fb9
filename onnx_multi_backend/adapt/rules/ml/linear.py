# SPDX-License-Identifier: Apache-2.0
"""Rules: linear models of ai.onnx.ml."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.rules.ml.sites import columns_of, is_ml, rows_of, transformed, winners
from onnx_multi_backend.adapt.site import Body, Site


def linear_regressor(site: Site) -> Iterator[ModelProto]:
    """A product with the coefficients of each target, and its intercept. Source: LinearRegressor's documentation."""
    if not is_ml(site, "LinearRegressor"):
        return
    targets, how = site.attribute("targets", 1), site.attribute("post_transform", "NONE")
    if targets < 1 or (targets == 1 and how != "NONE"):  # of one, ONNX Runtime and the documentation do not agree
        return
    body = Body(site)
    scores = _scores(site, body, targets)
    result = None if scores is None else transformed(body, scores, how)
    if result is not None:
        yield body.finish(result)


def linear_classifier(site: Site) -> Iterator[ModelProto]:
    """The scores of each class, and the label of the largest one. Source: LinearClassifier's documentation.

    Labels are numbers here, and as many as there are sets of coefficients: scikit-learn's converter writes a set for each of two classes.
    """
    labels = site.attribute("classlabels_ints", [])
    if not is_ml(site, "LinearClassifier") or len(labels) < 2:
        return
    body = Body(site)
    scores = _scores(site, body, len(labels))
    result = None if scores is None else transformed(body, scores, site.attribute("post_transform", "NONE"))
    if scores is not None and result is not None:
        yield body.finish(winners(body, scores, labels), result)


def _scores(site: Site, body: Body, count: int) -> str | None:
    """Rows of scores, before any transformation; None where there is not a set of coefficients for each."""
    coefficients = np.array(site.attribute("coefficients", []), np.float32)
    intercepts = np.array(site.attribute("intercepts", []), np.float32)
    columns = columns_of(site)
    width, rest = divmod(coefficients.size, count)
    if rest or not width or columns not in (None, width) or intercepts.size not in (0, count):
        return None
    if (rows := rows_of(site, body)) is None:
        return None
    scores = body("MatMul", rows, body.constant(coefficients.reshape(count, width).T, TensorProto.FLOAT))
    return str(body("Add", scores, body.constant(intercepts)) if intercepts.size else scores)
