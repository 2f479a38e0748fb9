# SPDX-License-Identifier: Apache-2.0
"""Whether rounding explains a difference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from backend_test.search import engines
from backend_test.search.answers import RESULT
from backend_test.search.judge import agree, close
from backend_test.search.parts import inner_values

#: How often the inputs and constants are rounded otherwise: a tie falls to each side half of the times.
_TRIES = 16


def sensitive(model: ModelProto, feeds: Sequence[dict[str, Any]], ours: Sequence[list[Any]]) -> bool:
    """Whether rounding changes the result wherever it differs from that of ONNX Runtime: then the difference proves nothing.

    The inputs and constants are rounded otherwise, and every value between is moved by a rounding of its largest number: what is
    compared, cut off or sorted there may fall to the other side.

    Parameters
    ----------
    model : onnx.ModelProto
    feeds : sequence of dict
        Of the runs A and B.
    ours : sequence of list
        The outputs of the runs A, B and A again, as far as they were made.
    """
    ask = engines.ort_unoptimized
    base = ask(model.SerializeToString(), feeds)
    if base.kind != RESULT:
        ask = engines.reference
        base = ask(model.SerializeToString(), feeds)
    runs = base.runs
    moved = [[_Moved(output) for output in outputs] for outputs in runs]
    for other, fed in _tries(model, feeds):
        for outputs, places in zip(ask(other.SerializeToString(), fed).runs, moved, strict=False):
            for output, place in zip(outputs, places, strict=False):
                place.add(output)
    pairs = [
        (place, output)
        for run, outputs in enumerate(ours)
        if run % 2 < len(moved) and len(moved[run % 2]) == len(outputs)
        for place, output in zip(moved[run % 2], outputs, strict=True)
    ]
    return any(place.any for place, _ in pairs) and all(place.explains(output) for place, output in pairs)


class _Moved:
    """Where an output moves."""

    def __init__(self, base: Any) -> None:
        self._base = base
        self._where: np.ndarray | None = np.zeros(np.shape(base), bool) if isinstance(base, np.ndarray) else None
        self.any = False

    def add(self, output: Any) -> None:
        """What came out when something was rounded otherwise."""
        if agree(output, self._base):
            return
        self.any = True
        if self._where is not None:
            differs = _where_different(output, self._base)
            self._where = None if differs is None else self._where | differs

    def explains(self, output: Any) -> bool:
        """Whether another result differs there alone; anywhere, once a shape or what is not an array moved."""
        if agree(output, self._base) or (self._where is None and self.any):
            return True
        differs = _where_different(output, self._base)
        return self._where is not None and differs is not None and bool((self._where | ~differs).all())


def _where_different(one: Any, other: Any) -> np.ndarray | None:
    """Where two arrays differ; None for those of other shapes or types."""
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        return None
    if one.shape != other.shape or one.dtype != other.dtype:
        return None
    if one.dtype.kind in "biuOUS":
        return np.asarray(one != other)
    return ~close(one, other)


def _tries(model: ModelProto, feeds: Sequence[dict[str, Any]]) -> Iterator[tuple[ModelProto, Sequence[dict[str, Any]]]]:
    rng = np.random.default_rng(0)
    for _ in range(_TRIES):
        yield _shaken(model, feeds, rng)
    try:
        between = inner_values(model, feeds)
    except Exception:  # an evaluator that fails here leaves the values between as they are
        return
    for sign in (1, -1):
        yield _moved(model, between, sign), feeds


#: A rounding: a few steps of each type around 1.
_ROUNDING = {"float64": 1e-9, "float32": 3e-7, "float16": 1e-3, "bfloat16": 8e-3}


def _shaken(
    model: ModelProto, feeds: Sequence[dict[str, Any]], rng: np.random.Generator
) -> tuple[ModelProto, list[dict[str, Any]]]:
    """The model and its inputs with every float rounded otherwise."""

    def moved(array: Any) -> Any:
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fV":
            return array
        step = _ROUNDING.get(array.dtype.name, 8e-3)
        with np.errstate(all="ignore"):
            shaken = array.astype(np.float64) * (1 + step * rng.uniform(-1, 1, array.shape))
        return np.asarray(shaken).astype(array.dtype)  # of a single number numpy makes a scalar, which engines refuse

    other = ModelProto()
    other.CopyFrom(model)
    made = [a.t for n in other.graph.node if n.op_type == "Constant" for a in n.attribute if a.HasField("t")]
    for tensor in (*other.graph.initializer, *made):
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
            tensor.CopyFrom(numpy_helper.from_array(moved(numpy_helper.to_array(tensor)), tensor.name))
    return other, [{name: moved(array) for name, array in fed.items()} for fed in feeds]


def _moved(model: ModelProto, values: Sequence[Mapping[str, Any]], sign: int) -> ModelProto:
    """The model with a rounding added to every float between its nodes."""
    other = ModelProto()
    other.CopyFrom(model)
    read = {name for node in model.graph.node for name in node.input}
    nodes: list[NodeProto] = []
    for node in other.graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            held = [v.get(name) for v in values]
            if (
                name not in read
                or node.op_type in ("Constant", "Optional")
                or not all(isinstance(a, np.ndarray) for a in held)
            ):
                continue
            dtype = held[0].dtype  # type: ignore[union-attr]
            if dtype.name not in ("float32", "float64", "float16"):
                continue
            finite = [np.abs(a[np.isfinite(a)]).max(initial=0) for a in held]  # type: ignore[index]
            step = np.array(sign * _ROUNDING[dtype.name] * float(max(finite)), dtype)
            other.graph.initializer.append(numpy_helper.from_array(step, f"{name}/step"))
            node.output[place] = f"{name}/exact"
            nodes.append(helper.make_node("Add", [f"{name}/exact", f"{name}/step"], [name]))
    del other.graph.node[:]
    other.graph.node.extend(nodes)
    return other
