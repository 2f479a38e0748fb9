# SPDX-License-Identifier: Apache-2.0
"""Rules: operators of ai.onnx.ml that look numbers up among known ones. A number beside each of them takes memory for each element and category."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.intervals.values import SMALL
from onnx_multi_backend.adapt.rules.ml.sites import NUMBERS, is_ml
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_FLOAT = _T.FLOAT
#: The least float32 that is not denormal.
_LEAST = 2.0**-126
#: More categories than these are not written.
_MOST = 4096
#: The attributes of a LabelEncoder by the type of what is looked up, and of what is found, with the default of the latter.
_KEYS: dict[int, str] = {_FLOAT: "keys_floats", _T.INT64: "keys_int64s"}
_VALUES: dict[int, tuple[str, str, float]] = {
    _FLOAT: ("values_floats", "default_float", -0.0),
    _T.INT64: ("values_int64s", "default_int64", -1),
}


def one_hot_encoder(site: Site) -> Iterator[ModelProto]:
    """1 where an element is the category, on an axis of its own. Source: OneHotEncoder's documentation, and ONNX Runtime's kernel.

    Fractions are cut off. That another number is refused where ``zeros`` is 0 cannot be written.
    """
    x, known = site.input(0), site.attribute("cats_int64s", [])
    if not is_ml(site, "OneHotEncoder") or not site.attribute("zeros", 1) or not _are_distinct(known):
        return
    if site.elem_type(x) not in NUMBERS or site.rank(x) is None:
        return
    body = Body(site)
    if site.elem_type(x) == _FLOAT:  # a Cast of NaN may be any number
        if max(map(abs, known)) > SMALL:
            return
        whole = body("Where", body("Less", x, body.constant(0, _FLOAT)), body("Ceil", x), body("Floor", x))
        yield body.finish(body.cast(_equal(body, whole, known, _FLOAT), _FLOAT))
        return
    numbers = x if site.elem_type(x) == _T.INT64 else body.cast(x, _T.INT64)
    yield body.finish(body.cast(_equal(body, numbers, known, _T.INT64), _FLOAT))


def label_encoder(site: Site) -> Iterator[ModelProto]:
    """The value beside the key that an element is, or the default. Source: LabelEncoder's documentation."""
    kind = site.elem_type(site.input(0))
    made = next((made for made, names in _VALUES.items() if site.attribute(names[0], [])), 0)
    if not is_ml(site, "LabelEncoder") or kind not in _KEYS or not made or site.rank(site.input(0)) is None:
        return
    name, default_name, usual = _VALUES[made]
    keys, values = site.attribute(_KEYS[kind], []), site.attribute(name, [])
    if any(attribute.name.endswith("_tensor") for attribute in site.node.attribute):
        return
    if not _are_distinct(keys) or len(keys) != len(values) or any(map(_is_odd, keys)):
        return
    body = Body(site)
    equal = _equal(body, site.input(0), keys, kind)
    place = body("ArgMax", body.cast(equal, _T.INT32), axis=-1, keepdims=0)
    found = body("ReduceMax", body.cast(equal, _T.INT32), body.ints(-1), keepdims=0)
    default = body.constant(site.attribute(default_name, usual), made)
    value = body("Gather", body.constant(np.array(values), made), place, axis=0)
    yield body.finish(body("Where", body.cast(found, _T.BOOL), value, default))


def _is_odd(key: float) -> bool:
    """Whether a key equals no number, or, as a float32, one that an engine may take for 0."""
    return math.isnan(key) or 0 < abs(key) < _LEAST


def _are_distinct(known: list[Any]) -> bool:
    return 0 < len(known) <= _MOST and len(set(known)) == len(known)


def _equal(body: Body, numbers: str, known: list[Any], kind: int) -> Any:
    return body("Equal", body("Unsqueeze", numbers, body.ints(-1)), body.constant(np.array(known), kind))
