# SPDX-License-Identifier: Apache-2.0
"""A random case of ONNX with other attributes, operands or sizes, and inputs for two runs."""

from __future__ import annotations

import functools
import random
from collections.abc import Collection
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.test_case import TestCase

from backend_test.search.cases import cases as all_cases
from backend_test.search.forms import Case, in_form
from backend_test.search.forms.case import copied, opset
from backend_test.search.graphs.altered.attributes import other_attribute
from backend_test.search.graphs.altered.operands import FEW, one_operand_less, other_numbers, other_size, stored
from backend_test.search.graphs.generate import Made
from onnx_multi_backend.models.graph_walk import all_nodes, names_read
from onnx_multi_backend.models.plausible import implausible

#: Of no use here: random numbers, and images.
_LEFT_OUT = frozenset(
    "Bernoulli Dropout ImageDecoder Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike".split()
)
_TRIES = 200
#: Elements of all inputs: other than the operator's answer, a large one tells nothing.
_MOST = 60_000
_IN_A_FORM = 0.3
#: Forms that change no type and need no results.
_FORMS = (
    "behind nodes",
    "behind a Transpose",
    "behind a Squeeze",
    "behind a Slice",
    "behind a Cast",
    "behind arithmetic",
    "in a function",
    "in a branch",
    "in a loop",
    "in a loop of states",
    "in a scan",
)


def random_case(rng: random.Random, operators: Collection[str] = ()) -> Made:
    """Draw a case, of one of these operators where there are some, and changes of it; the same random numbers make the same."""
    cases = [c for c in _plain() if not operators or any(n.op_type in operators for n in c.model.graph.node)]  # type: ignore[union-attr]
    for _ in range(_TRIES):
        case = rng.choice(cases)
        assert case.model is not None and case.data_sets is not None
        model, feeds = copied(case.model), _feeds(case)
        version = opset(model)
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            how = rng.random()
            if how < 0.6:
                other_attribute(model, version, rng)
            else:
                rng.choice((other_numbers, other_size, other_size, one_operand_less))(model, feeds, rng)
        if sum(array.size for array in feeds.values()) > _MOST:
            continue
        if rng.random() < 0.6:
            stored(model, feeds, rng)
        _sized(model, feeds)
        if feeds and _typed(model):
            return _open(*_among_others(model, feeds, rng), rng)
    raise AssertionError("no case could be drawn")


@functools.cache
def _plain() -> list[TestCase]:
    """The cases whose inputs are tensors, all of them given."""
    return [case for case in all_cases()[0] if case.model is not None and case.data_sets and _is_plain(case)]


def _is_plain(case: TestCase) -> bool:
    assert case.model is not None and case.data_sets is not None
    given = case.data_sets[0][0]
    return (
        not any(node.op_type in _LEFT_OUT for node in all_nodes(case.model))
        and len(given) == len(case.model.graph.input)
        and all(isinstance(x, (np.ndarray, np.generic, TensorProto)) for x in given)
        and "_expanded" not in case.name
    )


def _feeds(case: TestCase) -> dict[str, Any]:
    assert case.model is not None and case.data_sets is not None
    arrays = [numpy_helper.to_array(x) if isinstance(x, TensorProto) else np.asarray(x) for x in case.data_sets[0][0]]
    return {value.name: array for value, array in zip(case.model.graph.input, arrays, strict=True)}


def _sized(model: ModelProto, feeds: dict[str, Any]) -> None:
    """Declare the inputs' sizes as they are, and leave out those that nothing reads."""
    read = set(names_read(model.graph))
    for value in list(model.graph.input):
        if value.name not in read:
            model.graph.input.remove(value)
            feeds.pop(value.name, None)
            continue
        shape = value.type.tensor_type.shape
        del shape.dim[:]
        shape.SetInParent()
        for size in feeds[value.name].shape:
            shape.dim.add().dim_value = size
    for tensor in [t for t in model.graph.initializer if t.name not in read]:
        model.graph.initializer.remove(tensor)


def _typed(model: ModelProto) -> bool:
    """Declare the outputs' types as they are now; whether ONNX's inference finds the model right."""
    if implausible(model.graph.node) is not None:  # onnx may end the process over it
        return False
    for value in model.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
            value.type.tensor_type.elem_type = 0
    try:
        typed = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        for value, told in zip(model.graph.output, typed.graph.output, strict=True):
            kind = told.type.tensor_type.elem_type
            if value.type.HasField("tensor_type") and not kind:
                return False
            if kind:
                value.type.tensor_type.elem_type = kind
            if kind and told.type.tensor_type.HasField("shape"):
                value.type.tensor_type.shape.SetInParent()
                for _ in told.type.tensor_type.shape.dim:
                    value.type.tensor_type.shape.dim.add()
    except (onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        return False
    return True


def _among_others(model: ModelProto, feeds: dict[str, Any], rng: random.Random) -> tuple[ModelProto, dict[str, Any]]:
    """Now and then the same behind other nodes, in a function, in a branch, in a loop."""
    made = in_form(rng.choice(_FORMS), Case(model, feeds, None)) if rng.random() < _IN_A_FORM else None
    return (made.model, made.feeds) if made is not None and made.feeds and _typed(made.model) else (model, feeds)


def _open(model: ModelProto, feeds: dict[str, Any], rng: random.Random) -> Made:
    """Leave sizes of inputs open, and draw other data for a second run."""
    if rng.random() < 0.4:
        for value in model.graph.input:
            for place, size in enumerate(value.type.tensor_type.shape.dim):
                if rng.random() < 0.7:
                    size.dim_param = f"{value.name}_{place}"
    return Made(model, (feeds, {name: _shuffled(array, rng) for name, array in feeds.items()}))


def _shuffled(array: np.ndarray, rng: random.Random) -> np.ndarray:
    """The same numbers elsewhere; a few whole ones, which may be axes or sizes, stay where they are."""
    if array.dtype.kind in "iub" and array.size <= FEW and array.ndim <= 1:
        return array
    return np.random.default_rng(rng.getrandbits(32)).permutation(array.reshape(-1)).reshape(array.shape)
