# SPDX-License-Identifier: Apache-2.0
"""Mending what OpenVINO's frontend made of a model: nodes that OpenVINO has in a right form, where the frontend takes another.

This costs next to nothing, where rewriting the ONNX model would cost its inference and copying. Only the pure preset can do it:
OpenVINO's execution provider reads the model by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.openvino.inner_graphs import graphs_of
from onnx_multi_backend.engines.openvino.mends import (
    broadcasts,
    doubles,
    empty_sizes,
    extremes,
    folded,
    frontend_forms,
    gathered,
    nan_operands,
    operand_order,
    possible,
    ranges,
    reductions,
    splits,
)
from onnx_multi_backend.models.contents import Contents


class _Mend(NamedTuple):
    """How a node is mended.

    Attributes
    ----------
    operators : mapping of str to str
        ONNX's operators, and what OpenVINO calls them.
    mend : callable
        Changes a node of the read model, or puts another in its place; False where it is right as it is.
    change, reason : str
    before : int, optional
        The first opset of ONNX in which the node is right.
    inside : bool
        Whether only nodes of branches and bodies are meant.
    may_matter : callable, optional
        Tells of a model that has these operators whether any of them may have to be mended: looking at each of OpenVINO's nodes takes longer.
    """

    operators: Mapping[str, str]
    mend: Callable[[Any], bool]
    change: str
    reason: str
    before: int | None = None
    inside: bool = False
    may_matter: Callable[[Contents], bool] | None = None


#: Measured with OpenVINO 2026.4.
_MENDS = (
    _Mend(
        {"Max": "Maximum", "Min": "Minimum"},
        nan_operands.constant_first,
        "given its constant operand first, or last where it holds a NaN",
        "a NaN is kept only where it is in the last operand",
    ),
    _Mend(
        {"TopK": "TopK", "Hardmax": "TopK"},
        frontend_forms.stable,
        "asked to be stable",
        "OpenVINO's frontend does not ask for it, and among equal values the lower index then need not come first",
    ),
    _Mend(
        {"Greater": "Greater", "GreaterOrEqual": "GreaterEqual"},
        nan_operands.as_less,
        "written as Less of swapped operands",
        "a comparison with NaN is true with AVX-512 and with SSE4.2; Less is right everywhere",
    ),
    _Mend(
        {"Range": "Range"},
        ranges.stops_at_start,
        "its end is at least its start",
        "a range whose end precedes its start is not empty",
    ),
    _Mend(
        {"NonZero": "NonZero"},
        frontend_forms.not_zero,
        "asked for what is not equal to 0",
        "a Cast of floating-point numbers to integers before it is left out",
    ),
    _Mend(
        {"NonZero": "NonZero"},
        frontend_forms.row_by_row,
        "looked for along one axis",
        "where a constant of one element lies in its second axis and later ones is never written",
    ),
    _Mend(
        {"Div": "Divide"},
        folded.cut_off,
        "truncated towards zero",
        "OpenVINO rounds quotients of integer constants down when it folds them, and to the nearest integer where they have 8 bits",
        may_matter=possible.divides_integers,
    ),
    _Mend(
        {"Div": "Divide"},
        folded.cut_off_inside,
        "truncated towards zero",
        "what a body reads from outside may be a constant, and OpenVINO rounds quotients of integer constants down when it folds them",
        inside=True,
        may_matter=possible.divides_integers,
    ),
    _Mend(
        {"Abs": "Abs"},
        folded.taken_for_positive,
        "written as a choice between a number and its negative",
        "the Abs of what is computed from constants and shapes alone is left out",
    ),
    _Mend(
        {name: name for name in extremes.GUARDED},
        extremes.guard,
        "guarded against NaN and infinities",
        "a NaN is lost, and the extreme of infinities alone, or of nothing, is finite",
    ),
    _Mend(
        {"Mul": "Multiply"},
        operand_order.empty_last,
        "given its operand without elements last",
        "a constant without elements, multiplied by a value and added to another, ends the process",
    ),
    _Mend(
        {"BitShift": "Multiply", "Mul": "Multiply"},
        operand_order.stored_last,
        "given its constant of 8 bits last",
        "in a quantized model the cast of such a constant is written over by the product, in each run once more",
        may_matter=possible.stores_bytes,
    ),
    *(
        _Mend(
            {"Clip": kind, operator: kind},
            operand_order.lower_rank_last,
            "given its operand of the lower rank last",
            "two of them, of constants of at most 16 bits with one element, make a scalar",
            may_matter=possible.holds_short_integers,
        )
        for operator, kind in (("Max", "Maximum"), ("Min", "Minimum"))
    ),
    *(
        _Mend(
            dict.fromkeys(
                (kind, "ArgMax", "ArgMin", "ConcatFromSequence", "Scan", "SequenceAt", "SplitToSequence"), kind
            ),
            empty_sizes.reshaped,
            "written as Reshape",
            "sizes of a tensor without elements that only a run tells come out as 0",
        )
        for kind in ("Squeeze", "Unsqueeze")
    ),
    _Mend(
        {"ConstantOfShape": "Broadcast", "Expand": "Broadcast"},
        broadcasts.kept_before,
        "kept before what reads it",
        "behind the arithmetic that reads it, a size of 0 that only a run tells becomes 1",
    ),
    _Mend(
        {"Split": "Split"},
        splits.of_any_size,
        "split into sizes that are computed in the run",
        "a size that only a run tells, and the number of parts does not divide, is refused then",
    ),
    _Mend({"Loop": "Loop"}, ranges.counts_from_zero, "makes 0 steps at least", "a loop of -1 steps never ends"),
    _Mend(
        possible.REDUCTIONS,
        reductions.kept_alone,
        "kept apart from what reads it",
        "a reduction of integers that takes in the arithmetic with a constant behind it gives other numbers",
        may_matter=possible.reduces_integers,
    ),
    _Mend(
        {"IsInf": "IsInf"},
        frontend_forms.beyond_numbers,
        "compared with the largest numbers",
        "behind an operator on elements nothing is infinite, where the shape is known only at run time and in branches and loops",
    ),
    _Mend(
        {"Compress": "Gather", "Gather": "Gather"},
        gathered.of_products,
        "given the larger of its data and itself",
        "a product of a constant of 8 bits that was cast is taken for weights and their scale",
        may_matter=possible.stores_bytes,
    ),
    _Mend(
        {"Softmax": "Softmax"},
        frontend_forms.over_all_behind,
        "written over flattened rows",
        "before opset 13 it goes over `axis` and all axes behind it together, and OpenVINO over `axis` alone",
        before=13,
    ),
)

#: Operators that need no other body here, whatever the table of defects says of them for others.
MENDED = frozenset({"IsInf", "NonZero", "Range", "Softmax", "Split", "TopK"}) | extremes.GUARDED


def mend(read: Any, contents: Contents) -> tuple[Adaptation, ...]:
    """Mend a read model in place.

    Parameters
    ----------
    read : openvino.Model
    contents : Contents
        Of what it was read from: a model without the operators that matter is not walked through again.
    """
    return (*_mended_nodes(read, contents), *_mended_sums(read, contents))


def _mended_nodes(read: Any, contents: Contents) -> Iterator[Adaptation]:
    wanted: defaultdict[str, list[_Mend]] = defaultdict(list)
    for known in _MENDS:
        if known.inside and not contents.holding:
            continue
        kinds = {kind for name, kind in known.operators.items() if name in contents.by_operator}
        if kinds and (known.may_matter is None or known.may_matter(contents)):
            for kind in kinds:
                wanted[kind].append(known)
    if not wanted:
        return
    opset = next((i.version for i in contents.model.opset_import if i.domain in ("", "ai.onnx")), 1)
    for op, inside in [(op, graph is not read) for graph in _graphs(read, contents) for op in graph.get_ops()]:
        for found in wanted.get(op.get_type_name(), ()):
            if found.inside > inside:
                continue
            if opset < (found.before or opset + 1) and found.mend(op):
                yield _adaptation(op, found.change, found.reason)
                break  # another node may be in its place


def _mended_sums(read: Any, contents: Contents) -> Iterator[Adaptation]:
    if not doubles.has_doubles(contents):
        return
    for graph in _graphs(read, contents):
        for op in doubles.sums_in_single(graph):
            reason = "a sum of float64 constants that is added to another one is never done"
            yield _adaptation(op, "computed in float32", reason)


def _graphs(read: Any, contents: Contents) -> Iterable[Any]:
    return graphs_of(read) if contents.holding else (read,)


def _adaptation(op: Any, change: str, reason: str) -> Adaptation:
    return Adaptation("mend_frontend", f"{op.get_type_name()} {op.get_friendly_name()!r}", change, reason)
