# SPDX-License-Identifier: Apache-2.0
"""A random pattern with up to three changes, and inputs for two runs."""

from __future__ import annotations

import random

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from backend_test.search.graphs.generate import Made
from backend_test.search.graphs.mutated.changes import CHANGES
from backend_test.search.graphs.mutated.patterns import drawn, patterns
from onnx_multi_backend.models.graph_walk import names_read
from onnx_multi_backend.models.plausible import implausible

_COUNTS = (0, 1, 1, 2, 2, 3)
#: How many draws are made until ONNX's inference finds nothing wrong.
_TRIES = 50
_DTYPES = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.INT64: np.int64}
#: Ids of tokens are below, so that every table of a pattern has them.
_IDS = 3


def random_pattern(rng: random.Random) -> Made:
    """Draw a pattern, and changes of it; the same random numbers make the same."""
    for _ in range(_TRIES):
        model = drawn(rng.choice(patterns()), rng)
        for _ in range(rng.choice(_COUNTS)):
            rng.choice(CHANGES)(model, rng)
        _drop_unread(model)
        if implausible(model.graph.node) is not None:  # onnx may end the process over it
            continue
        try:
            typed = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        except (onnx.shape_inference.InferenceError, ValueError):
            continue
        _declare_outputs(model, typed)
        if model.graph.input and rng.random() < 0.4:
            return _open(model, rng)
        if model.graph.input:
            return Made(model, (_feeds(model, rng), _feeds(model, rng)))
    raise AssertionError("no pattern could be drawn")


def _drop_unread(model: ModelProto) -> None:
    """Leave out the inputs and constants that nothing reads any more."""
    graph = model.graph
    read = set(names_read(graph))
    for given in (graph.input, graph.initializer):
        for value in [value for value in given if value.name not in read]:
            given.remove(value)


def _declare_outputs(model: ModelProto, typed: ModelProto) -> None:
    """The element types of the results, as they are now."""
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*typed.graph.value_info, *typed.graph.output)}
    kinds.update((v.name, v.type.tensor_type.elem_type) for v in typed.graph.input)
    for value in model.graph.output:
        value.type.tensor_type.elem_type = kinds[value.name]


def _open(model: ModelProto, rng: random.Random) -> Made:
    """Leave sizes of inputs open; now and then the second run has another first size."""
    first, second = _feeds(model, rng), _feeds(model, rng)
    batches = {
        value.type.tensor_type.shape.dim[0].dim_value for value in model.graph.input if value.type.tensor_type.shape.dim
    }
    if len(batches) == 1 and rng.random() < 0.4:
        longer = rng.choice((1, 2, 5))
        second = {
            name: np.resize(array, (longer, *array.shape[1:])) if array.ndim else array
            for name, array in second.items()
        }
    for value in model.graph.input:
        for place, size in enumerate(value.type.tensor_type.shape.dim):
            if rng.random() < 0.6 or second[value.name].shape[place] != size.dim_value:
                size.dim_param = f"{value.name}_{place}"
    return Made(model, (first, second))


def _feeds(model: ModelProto, rng: random.Random) -> dict[str, np.ndarray]:
    numbers = np.random.default_rng(rng.getrandbits(32))
    feeds = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        sizes = [size.dim_value for size in kind.shape.dim]
        whole = kind.elem_type == TensorProto.INT64
        array = numbers.integers(0, _IDS, sizes) if whole else numbers.standard_normal(sizes)
        feeds[value.name] = np.asarray(array, _DTYPES[kind.elem_type])
    return feeds
