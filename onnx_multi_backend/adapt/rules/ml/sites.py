# SPDX-License-Identifier: Apache-2.0
"""What the rules of ai.onnx.ml ask of a node, and how its scores become results."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_DOMAIN = "ai.onnx.ml"
_T = TensorProto
#: The types of numbers that are written: float64 would be rounded to float32 before it is compared.
NUMBERS = (_T.FLOAT, _T.INT32, _T.INT64)


def is_ml(site: Site, *operators: str) -> bool:
    """Whether a node is one of these operators of ai.onnx.ml."""
    return site.domain == _DOMAIN and site.op_type in operators


def columns_of(site: Site) -> int | None:
    """The last size of the first input; None where it is not known."""
    return (site.shape(site.input(0)) or [None])[-1]


def as_floats(site: Site, body: Body, name: str) -> str:
    """An input as float32."""
    return name if site.elem_type(name) == _T.FLOAT else body.cast(name, _T.FLOAT)


def rows_of(site: Site, body: Body) -> str | None:
    """The first input as rows of float32; a vector is one row. None where it is nothing of that."""
    x = site.input(0)
    rank, kind = site.rank(x), site.elem_type(x)
    if rank not in (1, 2) or kind not in NUMBERS:
        return None
    rows = as_floats(site, body, x)
    return rows if rank == 2 else str(body("Unsqueeze", rows, body.ints(0)))


def transformed(body: Body, scores: str, how: str) -> str | None:
    """Rows of scores after ``post_transform``; None where that is not written."""
    if how == "NONE":
        return scores
    if how == "LOGISTIC":
        return str(body("Sigmoid", scores))
    return str(body("Softmax", scores, axis=-1)) if how == "SOFTMAX" else None


def winners(body: Body, scores: str, labels: list[int]) -> str:
    """The label of the largest score of each row, the first of equal ones."""
    places = body("ArgMax", scores, axis=1, keepdims=0)
    if labels == list(range(len(labels))):
        return str(places)
    return str(body("Gather", body.constant(np.array(labels, np.int64)), places, axis=0))
