# SPDX-License-Identifier: Apache-2.0
"""Mending what OpenVINO's frontend made of a model: nodes that OpenVINO has in a right form, where the frontend takes another.

This costs next to nothing, where rewriting the ONNX model would cost its inference and copying. Only the pure preset can do it:
OpenVINO's execution provider reads the model by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.openvino import extremes, runtime
from onnx_multi_backend.engines.openvino.inner_graphs import graphs_of
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
    """

    operators: Mapping[str, str]
    mend: Callable[[Any], bool]
    change: str
    reason: str
    before: int | None = None


def _stable(op: Any) -> bool:
    sort = op.get_attributes()["sort"]
    if sort == "index":
        return False
    if sort == "none":  # any order will do then, and only a sort can be stable
        op.set_attribute("sort", "value")
    op.set_attribute("stable", True)
    return True


def _as_less(op: Any) -> bool:
    a, b = op.input_value(0), op.input_value(1)
    if not a.get_element_type().is_real():
        return False
    ov = runtime.load()
    less = (ov.opset8.less if op.get_type_name() == "Greater" else ov.opset8.less_equal)(b, a)
    less.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, less)
    return True


#: What passes numbers on as they are, or chooses among them.
_PASSES_ON = frozenset({"Convert", "Squeeze", "Unsqueeze", "Reshape", "Gather", "StridedSlice", "Slice"})


def _stops_at_start(op: Any) -> bool:
    start, stop, step = (op.input_value(i) for i in range(3))
    if start.get_element_type() != stop.get_element_type():
        return False  # no Range of ONNX: the frontend writes windows (HannWindow) with one
    known, first, last = (_number(value) for value in (step, start, stop))
    if None not in (known, first, last) or (known is not None and known > 0 and first == 0 and _at_least_zero(stop)):
        return False
    ops = runtime.load().opset8
    if known is None:
        below = ops.less(step, ops.constant(0, step.get_element_type()))
        end = ops.select(below, ops.minimum(stop, start), ops.maximum(stop, start))
    else:
        end = (ops.maximum if known > 0 else ops.minimum)(stop, start)
    op.input(1).replace_source_output(end.output(0))
    return True


def _number(value: Any) -> float | None:
    node = value.get_node()
    return float(node.get_data().item()) if node.get_type_name() == "Constant" and node.get_data().size == 1 else None


def _at_least_zero(value: Any) -> bool:
    node = value.get_node()
    while node.get_type_name() in _PASSES_ON:
        node = node.input_value(0).get_node()
    return node.get_type_name() in ("ShapeOf", "Relu")


def _counts_from_zero(op: Any) -> bool:
    count = op.input_value(0)
    if count.get_node().get_type_name() == "Constant" or _at_least_zero(count):
        return False
    ops = runtime.load().opset8
    op.input(0).replace_source_output(ops.maximum(count, ops.constant(0, count.get_element_type())).output(0))
    return True


def _over_all_behind(op: Any) -> bool:
    """Source: Softmax's documentation in opset 11. The frontend takes no tensor of unknown rank."""
    x = op.input_value(0)
    shape = list(x.get_partial_shape())
    axis = op.get_attributes()["axis"] % max(len(shape), 1)
    if all(size == 1 for size in shape[axis + 1 :]):
        return False
    ov = runtime.load()
    ops = ov.opset8
    rows = ops.reshape(x, ops.constant([0] * axis + [-1], ov.Type.i64), special_zero=True)
    result = ops.reshape(ops.softmax(rows, axis), ops.shape_of(x), special_zero=False)
    result.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, result)
    return True


def _not_zero(op: Any) -> bool:
    """Looks for a Cast before it: the plugin would have the node read what is cast."""
    x = op.input_value(0)
    cast = x.get_node()
    while cast.get_type_name() == "Identity":
        cast = cast.input_value(0).get_node()
    if cast.get_type_name() != "Convert" or not cast.input_value(0).get_element_type().is_real():
        return False
    if x.get_element_type() == runtime.load().Type.boolean:
        return False
    ops = runtime.load().opset8
    op.input(0).replace_source_output(ops.not_equal(x, ops.constant(0, x.get_element_type())).output(0))
    return True


#: What the plugin does not make a part of the reduction that it reads.
_STAYS_ALONE = frozenset({"Concat", "Result"})


def _kept_alone(op: Any) -> bool:
    """The larger of a value and itself is that value, and what has two inputs from one node stays a node."""
    readers = op.output(0).get_target_inputs()
    if not op.get_output_element_type(0).is_integral_number() or _is_folded(op.input_value(0).get_node()):
        return False
    if all(_leaves_alone(reader.get_node()) for reader in readers):
        return False
    larger = runtime.load().opset8.maximum(op, op)
    for reader in readers:
        reader.replace_source_output(larger.output(0))
    return True


def _leaves_alone(reader: Any) -> bool:
    """Whether what reads a reduction is not made a part of it. Booleans are reduced as integers of 8 bits."""
    kind = reader.get_type_name()
    return kind in _STAYS_ALONE or (
        kind == "Convert" and bool(reader.get_output_element_type(0) == runtime.load().Type.boolean)
    )


def _is_folded(node: Any) -> bool:
    """Whether it is a constant, or becomes one before anything runs: a shape that is known."""
    kind = node.get_type_name()
    return kind == "Constant" or (kind == "ShapeOf" and bool(node.input_value(0).get_partial_shape().is_static))


#: So many nodes are looked through for what becomes a constant.
_MOST_FOLDED = 64
#: What makes no negative numbers of others.
_KEEPS_SIGNS = frozenset({"Add", "Concat", "Divide", "Maximum", "Minimum", "Multiply"})
#: The same, of the first input.
_KEEPS_FIRST = _PASSES_ON | {"Broadcast", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"}


def _cut_off(op: Any) -> bool:
    """What is divided while the model runs is cut off anyway, and so are quotients of numbers that are not negative."""
    if not op.get_output_element_type(0).is_integral_number() or not op.get_attributes()["m_pythondiv"]:
        return False
    negative, seen = False, 0
    constants: list[Any] = []
    todo = [(op, True)]
    while todo:
        node, counts = todo.pop()
        kind = node.get_type_name()
        seen += 1
        if _is_folded(node):
            if counts and kind == "Constant":
                constants.append(node)
            continue
        if seen > _MOST_FOLDED or not node.get_input_size():
            return False
        negative |= counts and kind not in _KEEPS_SIGNS | _KEEPS_FIRST
        todo += [
            (node.input_value(i).get_node(), counts and (i == 0 or kind not in _KEEPS_FIRST))
            for i in range(node.get_input_size())
        ]
    negative = negative or any((constant.get_data() < 0).any() for constant in constants)
    if op.get_output_element_type(0).bitwidth == 8:
        _divide_in_32_bits(op)
        return True
    if negative:
        op.set_attribute("m_pythondiv", False)
    return negative


def _divide_in_32_bits(op: Any) -> None:
    """What OpenVINO does not compute beforehand, 8 bits, is rounded to the nearest integer."""
    ov = runtime.load()
    ops = ov.opset8
    wide = [ops.convert(op.input_value(i), "i32") for i in (0, 1)]
    quotient = ops.divide(*wide)
    quotient.set_attribute("m_pythondiv", False)
    result = ops.convert(quotient, op.get_output_element_type(0).get_type_name())
    result.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, result)


def _taken_for_positive(op: Any) -> bool:
    """What is computed from constants and shapes alone; 0 is subtracted from, so that no -0 comes out."""
    x = op.input_value(0)
    if x.get_node().get_type_name() == "Constant" or not x.get_element_type().is_signed():
        return False
    todo, seen = [x.get_node()], 0
    while todo:
        node = todo.pop()
        seen += 1
        if seen > _MOST_FOLDED or node.get_type_name() in ("Parameter", "ReadValue"):
            return False
        if node.get_type_name() != "ShapeOf":
            todo += [node.input_value(i).get_node() for i in range(node.get_input_size())]
    ov = runtime.load()
    ops = ov.opset8
    zero = ops.constant(0, x.get_element_type())
    result = ops.select(ops.less_equal(x, zero), ops.subtract(zero, x), x)
    result.set_friendly_name(op.get_friendly_name())
    ov.utils.replace_node(op, result)
    return True


def _constant_first(op: Any) -> bool:
    """NaN is kept where it is in the last operand: a constant goes there if it holds one, and first if it holds none."""
    a, b = op.input_value(0), op.input_value(1)
    constant = [value.get_node().get_type_name() == "Constant" for value in (a, b)]
    if not a.get_element_type().is_real() or constant[0] == constant[1]:
        return False
    place = constant.index(True)
    if _holds_nan(op.input_value(place).get_node()) == (place == 1):
        return False
    op.input(0).replace_source_output(b)
    op.input(1).replace_source_output(a)
    return True


def _holds_nan(constant: Any) -> bool:
    data = constant.get_data()
    return bool((data != data).any())  # of bfloat16 too


#: Measured with OpenVINO 2026.4.
_MENDS = (
    _Mend(
        {"Max": "Maximum", "Min": "Minimum"},
        _constant_first,
        "given its constant operand first, or last where it holds a NaN",
        "a NaN is kept only where it is in the last operand",
    ),
    _Mend(
        {"TopK": "TopK"},
        _stable,
        "asked to be stable",
        "OpenVINO's frontend does not ask for it, and among equal values the lower index then need not come first",
    ),
    _Mend(
        {"Greater": "Greater", "GreaterOrEqual": "GreaterEqual"},
        _as_less,
        "written as Less of swapped operands",
        "a comparison with NaN is true with AVX-512 and with SSE4.2; Less is right everywhere",
    ),
    _Mend(
        {"Range": "Range"},
        _stops_at_start,
        "its end is at least its start",
        "a range whose end precedes its start is not empty",
    ),
    _Mend(
        {"NonZero": "NonZero"},
        _not_zero,
        "asked for what is not equal to 0",
        "a Cast of floating-point numbers to integers before it is left out",
    ),
    _Mend(
        {"Div": "Divide"},
        _cut_off,
        "cut off towards zero",
        "quotients of integer constants are rounded down where OpenVINO computes them before anything runs, and to the nearest "
        "integer where they have 8 bits",
    ),
    _Mend(
        {"Abs": "Abs"},
        _taken_for_positive,
        "written as a choice between a number and its negative",
        "the Abs of what is computed from constants and shapes alone is left out",
    ),
    _Mend(
        {name: name for name in extremes.GUARDED},
        extremes.guard,
        "guarded against NaN and infinities",
        "a NaN is lost, and the extreme of infinities alone, or of nothing, is finite",
    ),
    _Mend({"Loop": "Loop"}, _counts_from_zero, "makes 0 steps at least", "a loop of -1 steps never ends"),
    _Mend(
        {
            **{
                name: name
                for name in ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
            },
            "ReduceLogSum": "ReduceSum",
            "ReduceLogSumExp": "ReduceSum",
            "ReduceSumSquare": "ReduceSum",
            "Size": "ReduceProd",
        },
        _kept_alone,
        "kept apart from what reads it",
        "a reduction of integers that takes in the arithmetic with a constant behind it gives other numbers",
    ),
    _Mend(
        {"Softmax": "Softmax"},
        _over_all_behind,
        "written over flattened rows",
        "the axes behind `axis`, which belong to it before opset 13, are taken apart",
        before=13,
    ),
)

#: Operators that need no other body here, whatever the table of defects says of them for others.
MENDED = frozenset({"NonZero", "Range", "Softmax"}) | extremes.GUARDED


def mend(read: Any, contents: Contents) -> tuple[Adaptation, ...]:
    """Mend a read model in place.

    Parameters
    ----------
    read : openvino.Model
    contents : Contents
        Of what it was read from: a model without the operators that matter is not walked through again.
    """
    wanted: defaultdict[str, list[_Mend]] = defaultdict(list)
    for known in _MENDS:
        for kind in {kind for name, kind in known.operators.items() if name in contents.by_operator}:
            wanted[kind].append(known)
    if not wanted:
        return ()
    changes = []
    opset = next((i.version for i in contents.model.opset_import if i.domain in ("", "ai.onnx")), 1)
    graphs = graphs_of(read) if contents.holding else (read,)
    for op in [op for graph in graphs for op in graph.get_ops()]:
        for found in wanted.get(op.get_type_name(), ()):
            if opset < (found.before or opset + 1) and found.mend(op):
                where = f"{op.get_type_name()} {op.get_friendly_name()!r}"
                changes.append(Adaptation("mend_frontend", where, found.change, found.reason))
                break  # another node may be in its place
    return tuple(changes)
