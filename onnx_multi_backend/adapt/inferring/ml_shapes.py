# SPDX-License-Identifier: Apache-2.0
"""Shapes of what operators of ai.onnx.ml make, of which onnx (1.23) infers nothing. Source: their documentation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnx import NodeProto, TensorProto, TensorShapeProto, TypeProto, ValueInfoProto, helper

_T = TensorProto
_Dim = TensorShapeProto.Dimension

#: Operators whose result has the shape of their input; its type where it is not the input's.
_KEEPING = {"Binarizer": 0, "Imputer": 0, "LabelEncoder": 0, "Normalizer": _T.FLOAT, "Scaler": _T.FLOAT}
#: Operators that make a row of numbers of each row, and the attribute that tells how many.
_REGRESSORS = {"LinearRegressor": "targets", "TreeEnsembleRegressor": "n_targets", "SVMRegressor": ""}
#: Operators that make a label of each row, and a score for each class.
_CLASSIFIERS = frozenset({"LinearClassifier", "SVMClassifier", "TreeEnsembleClassifier"})
_LABELS = ("classlabels_int64s", "classlabels_ints", "classlabels_strings", "strings")
#: What a LabelEncoder maps to.
_VALUES = {"values_floats": _T.FLOAT, "values_int64s": _T.INT64, "values_strings": _T.STRING}
_MATRIX = 2
#: Of two classes, a kernel may give one score.
_PLAIN = 3

OPERATORS = frozenset({*_KEEPING, *_REGRESSORS, *_CLASSIFIERS, "OneHotEncoder"})


def results(node: NodeProto, data: TypeProto.Tensor | None) -> Iterator[ValueInfoProto]:
    """What such a node makes of an input of this type, as far as that is known."""
    if data is None or not data.HasField("shape") or not data.elem_type:
        return
    dims, kind = list(data.shape.dim), node.op_type
    given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if kind in _KEEPING:
        made = _mapped_to(given) if kind == "LabelEncoder" else _KEEPING[kind] or data.elem_type
        if made:
            yield _value(node.output[0], made, dims)
    elif kind == "OneHotEncoder":
        count = len(given.get("cats_int64s", ())) or len(given.get("cats_strings", ()))
        yield _value(node.output[0], _T.FLOAT, [*dims, _Dim(dim_value=count)])
    elif len(dims) == _MATRIX and kind in _REGRESSORS:
        yield _value(node.output[0], _T.FLOAT, [dims[0], _Dim(dim_value=given.get(_REGRESSORS[kind], 1))])
    elif len(dims) == _MATRIX:
        labels: list[Any] = next((given[name] for name in _LABELS if given.get(name)), [])
        label = _T.STRING if labels and isinstance(labels[0], bytes) else _T.INT64
        is_known = len(labels) >= _PLAIN and kind != "SVMClassifier"  # which may have one for each pair
        scores = _Dim(dim_value=len(labels)) if is_known else _Dim()
        for name, of, shape in zip(node.output, (label, _T.FLOAT), (dims[:1], [dims[0], scores]), strict=False):
            if name:
                yield _value(name, of, shape)


def _mapped_to(given: dict[str, Any]) -> int:
    return next((kind for name, kind in _VALUES.items() if given.get(name)), 0)


def _value(name: str, elem_type: int, dims: list[_Dim]) -> ValueInfoProto:
    value = ValueInfoProto(name=name)
    value.type.tensor_type.elem_type = elem_type
    value.type.tensor_type.shape.SetInParent()
    value.type.tensor_type.shape.dim.extend(dims)
    return value
