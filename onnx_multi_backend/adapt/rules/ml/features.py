# SPDX-License-Identifier: Apache-2.0
"""Rules: operators of ai.onnx.ml that prepare features."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.rules.ml.sites import NUMBERS, as_floats, columns_of, is_ml
from onnx_multi_backend.adapt.site import Body, Site

_FLOAT = TensorProto.FLOAT


def array_feature_extractor(site: Site) -> Iterator[ModelProto]:
    """Gather along the last axis; a vector becomes a row. Source: ArrayFeatureExtractor's documentation, and ONNX Runtime's kernel."""
    x, indices = site.input(0), site.input(1)
    rank = site.rank(x)
    if not is_ml(site, "ArrayFeatureExtractor") or not rank:
        return
    body = Body(site)
    found = body("Gather", x, body("Reshape", indices, body.ints(-1)), axis=rank - 1)
    yield body.finish(body("Unsqueeze", found, body.ints(0)) if rank == 1 else found)


def binarizer(site: Site) -> Iterator[ModelProto]:
    """1 above the threshold, else 0. Source: Binarizer's documentation."""
    x, kind = site.input(0), site.elem_type(site.input(0))
    if not is_ml(site, "Binarizer") or kind not in NUMBERS:
        return
    body = Body(site)
    threshold = np.float32(site.attribute("threshold", 0.0))
    x = as_floats(site, body, x)
    yield body.finish(body.cast(body("Greater", x, body.constant(threshold, _FLOAT)), kind))


def feature_vectorizer(site: Site) -> Iterator[ModelProto]:
    """The columns of all inputs beside each other, as float32. Source: FeatureVectorizer's documentation."""
    sizes = [site.shape(name) for name in site.node.input]
    widths = site.attribute("inputdimensions", [])
    if not is_ml(site, "FeatureVectorizer") or len(widths) != len(sizes):
        return
    if any(size is None or len(size) != 2 or size[1] != width for size, width in zip(sizes, widths, strict=True)):
        return
    body = Body(site)
    yield body.finish(body("Concat", *(as_floats(site, body, name) for name in site.node.input), axis=1))


def imputer(site: Site) -> Iterator[ModelProto]:
    """Another value for each of the one that is to be replaced. Source: Imputer's documentation."""
    x, kind = site.input(0), site.elem_type(site.input(0))
    if not is_ml(site, "Imputer") or kind not in (_FLOAT, TensorProto.INT64) or (site.rank(x) or 0) not in (1, 2):
        return
    body = Body(site)
    suffix, default = ("floats", 0.0) if kind == _FLOAT else ("int64s", 0)
    values = site.attribute(f"imputed_value_{suffix}", [])
    old = site.attribute("replaced_value_float" if kind == _FLOAT else "replaced_value_int64", default)
    columns = columns_of(site)
    if not values or (len(values) > 1 and columns != len(values)):
        return
    replaced = body("IsNaN", x) if np.isnan(old) else body("Equal", x, body.constant(old, kind))
    yield body.finish(body("Where", replaced, body.constant(np.array(values), kind), x))


def normalizer(site: Site) -> Iterator[ModelProto]:
    """Rows divided by their largest magnitude, or the sum of magnitudes, or the root of that of squares; a row of zeros stays.

    Source: ONNX's reference, as scikit-learn has it. ONNX Runtime's largest element has a sign.
    """
    x, kind = site.input(0), site.elem_type(site.input(0))
    how = site.attribute("norm", "MAX")
    if not is_ml(site, "Normalizer") or kind not in NUMBERS or (site.rank(x) or 0) not in (1, 2):
        return
    body = Body(site)
    x = as_floats(site, body, x)
    if how == "MAX":
        norm = body("ReduceMax", body("Abs", x), body.ints(-1), keepdims=1)
    elif how == "L1":
        norm = body("ReduceSum", body("Abs", x), body.ints(-1), keepdims=1)
    elif how == "L2":
        norm = body("Sqrt", body("ReduceSum", body("Mul", x, x), body.ints(-1), keepdims=1))
    else:
        return
    zero, one = (body.constant(number, _FLOAT) for number in (0, 1))
    yield body.finish(body("Div", x, body("Where", body("Equal", norm, zero), one, norm)))


def scaler(site: Site) -> Iterator[ModelProto]:
    """(x - offset) * scale in float32, each for all columns or for one. Source: Scaler's documentation."""
    x = site.input(0)
    offset, scale = (site.attribute(name, []) for name in ("offset", "scale"))
    columns = columns_of(site)
    if not is_ml(site, "Scaler") or site.elem_type(x) not in NUMBERS or (site.rank(x) or 0) not in (1, 2):
        return
    if not offset or not scale:
        return
    if any(len(values) > 1 and columns != len(values) for values in (offset, scale)):
        return
    body = Body(site)
    x = as_floats(site, body, x)
    moved = body("Sub", x, body.constant(np.array(offset), _FLOAT))
    yield body.finish(body("Mul", moved, body.constant(np.array(scale), _FLOAT)))
