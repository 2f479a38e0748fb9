# SPDX-License-Identifier: Apache-2.0
"""What becomes of a model where an engine computes wide types in narrower ones: int64 in int32, float64 in float32."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnx_multi_backend.adapt.intervals import wide_inputs
from onnx_multi_backend.adapt.intervals.beyond_int32 import SHAPE_ALONE, readers_of_constants_beyond
from onnx_multi_backend.adapt.intervals.bounds import Bound, as_inputs, find_bounds, largest
from onnx_multi_backend.adapt.intervals.chosen_constants import Chosen
from onnx_multi_backend.adapt.intervals.constant_reductions import (
    axes_given,
    constants_of,
    leaves_int32,
    may_leave_int32,
    reduces_nothing,
)
from onnx_multi_backend.adapt.intervals.hints import read_hint
from onnx_multi_backend.adapt.intervals.index_bounds import held_to_rows
from onnx_multi_backend.adapt.intervals.leaving import ROOT, Leaving, reads_product
from onnx_multi_backend.adapt.intervals.ranges import ranges
from onnx_multi_backend.adapt.intervals.shift_bounds import Shift, held_to_shifts, is_shift
from onnx_multi_backend.adapt.intervals.study import Concern, Study
from onnx_multi_backend.adapt.intervals.values import LIMITS, Value, may_have_wrapped
from onnx_multi_backend.adapt.operation import Made
from onnx_multi_backend.adapt.single_node import infer, reads
from onnx_multi_backend.models.graph_walk import canonical, nodes_in, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.tensors import WIDE

_DOUBLE, _INT32 = TensorProto.DOUBLE, TensorProto.INT32
_LEAVES = "its result leaves what int32 holds"
_MAY_LEAVE = "its result may leave what int32 holds"
#: What gives a tensor another shape, and moves nothing.
_RESHAPING = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
_MOVING = _RESHAPING | {"Expand", "Transpose"}
_WRAPS = "it reads an unsigned number that may have wrapped around below 0, which is negative in int32"


#: Whether an engine may compute a node wrongly that reads these values.
Suspects = Callable[[NodeProto, list[Value]], bool]


def study(
    model: ModelProto,
    may_have_defect: Suspects,
    *,
    narrows: bool,
    exact_in_float: bool = False,
    folds_exactly: bool = False,
) -> Study:
    """Look through a model.

    Parameters
    ----------
    may_have_defect : callable
    narrows : bool
        Whether the engine computes wide types in narrower ones.
    exact_in_float : bool
        Whether it reads the inputs in floating point that `adapt.wide_inputs` names.
    folds_exactly : bool
        Whether what is computed of constants alone is computed ahead in its own types.
    """
    found = Study()
    model = inlined(model)
    graph = model.graph
    if not narrows:

        def doubt(node: NodeProto, operands: list[Value], made: Made) -> None:
            found.uncertain = found.uncertain or may_have_defect(node, operands)

        found.values = ranges(graph, visit=doubt)
        return found
    wide = _counted(graph)
    for tensor in graph.initializer if wide else ():
        wide.pop(tensor.name, None)
    if wide and exact_in_float:
        for name in wide_inputs.exact_in_float(graph, {n: kind for n, kind in wide.items() if kind in WIDE}):
            del wide[name]
    leaving, chosen = Leaving(), Chosen(graph)
    computed_ahead: list[NodeProto] = []
    shifts: list[Shift] = []
    products: list[NodeProto] = []

    def look(node: NodeProto, operands: list[Value], made: Made) -> None:
        chosen(node, operands, made)
        if not found.uncertain and may_have_defect(node, operands):
            found.uncertain = True
        if may_leave_int32(node, operands, made):
            computed_ahead.append(node)
        double = computed = wrapped = False
        for value in operands:
            double = double or value.elem_type == _DOUBLE
            computed = computed or bool(value.sources)
            wrapped = wrapped or may_have_wrapped(value)
        if wrapped and not computed:
            leaving(node, operands, made)
        if computed:
            if is_shift(node, operands):
                shifts.append((node, operands))
            if reads_product(node, operands) and operands[0].elem_type in WIDE - {TensorProto.UINT32}:
                products.append(node)
            leaving(node, operands, made)
            operator = node.op_type
            if operator not in SHAPE_ALONE or canonical(node.domain):
                # What a body computes of its own inputs is not followed.
                inside = (each.op_type for body in subgraphs(node) for each in nodes_in(body.node))
                operators = {operator, *inside}
                for value in operands:
                    for source in value.sources:
                        found.readers.setdefault(source, set()).update(operators)
        for value in made.values:
            double = double or value.elem_type == _DOUBLE
        if double:
            found.doubles.append(Concern(node, "float64 is computed in float32"))

    given = as_inputs(graph, {name: largest(kind) for name, kind in wide.items()})
    values = ranges(graph, inputs=given, visit=look)
    if not given:
        found.values = values
    found.constants = [
        Concern(node, f"its constant {name!r} is beyond what int32 holds")
        for node, name in readers_of_constants_beyond(graph, {})
    ]
    wrapped = [node for node, sources in leaving.wrapped if not sources]
    if wide:
        bounds = find_bounds(model, wide, leaving)
        found.bounds = held_to_shifts(bounds.of_inputs, shifts)
        _hold_products(found.bounds, graph, products)
        wrapped += [node for node in bounds.wrapped if node not in wrapped]
        found.overflows = [Concern(node, _LEAVES) for node in bounds.overflows if node not in wrapped]
    found.bounds = held_to_rows(found.bounds, graph)
    for name in (name for name, bound in found.bounds.items() if bound.rows):
        found.readers.setdefault(name, set()).add("Gather")
    found.overflows = [*(Concern(node, _WRAPS) for node in wrapped), *found.overflows]
    found.chosen = [Concern(node, _MAY_LEAVE) for node in chosen.leaving()]
    constants = _moved(graph, constants_of(graph)) if computed_ahead else {}
    given_names = {value.name for value in graph.input}  # ONNX Runtime computes nothing ahead of a default
    large = [node for node in computed_ahead if leaves_int32(node, constants)]
    whole = [
        node
        for node in large
        if ((folds_exactly and given_names.isdisjoint(node.input)) or node.op_type == "BitwiseNot")
        and _is_only_given_back(node, graph)
    ]
    found.overflows += [Concern(node, _LEAVES) for node in large if node not in whole]
    return found


def _moved(graph: GraphProto, constants: dict[str, TensorProto]) -> dict[str, TensorProto]:
    """The constants, and what Identity makes of them; what a Cast reads that was moved has their numbers too."""
    found, numbers = dict(constants), dict(constants)
    for node in graph.node:
        if canonical(node.domain) or not node.input:
            continue
        read = node.input[0]
        if node.op_type == "Identity" and read in found:
            found[node.output[0]] = found[read]
        if node.op_type in _MOVING and read in numbers:
            numbers[node.output[0]] = numbers[read]
        if node.op_type in ("Cast", "CastLike") and read in numbers:
            found.setdefault(read, numbers[read])
    return found


def _is_only_given_back(node: NodeProto, graph: GraphProto) -> bool:
    """Whether what a node makes is a result of the model at most, and nothing computes with it. OpenVINO's complement then comes out whole too."""
    own = {id(each) for each in graph.node}
    found = set(node.output)
    for other in nodes_in(graph.node):
        if not found.isdisjoint(reads(other)) and (other.op_type not in SHAPE_ALONE or canonical(other.domain)):
            if canonical(other.domain) or other.op_type not in _RESHAPING or id(other) not in own:
                return False
            found.update(other.output)
    return id(node) in own


def _counted(graph: GraphProto) -> dict[str, int]:
    """The types of the inputs from which an engine may compute what int32 does not hold."""
    kinds = {v.name: v.type.tensor_type.elem_type for v in graph.input if read_hint(v) is None}
    others = {kind for kind in kinds.values() if kind in LIMITS and kind not in WIDE | {TensorProto.BOOL}}
    if others and not any(_widens(node) for node in nodes_in(graph.node)):
        others = others & {_INT32} if any(node.op_type == ROOT for node in nodes_in(graph.node)) else set()
    return {name: kind for name, kind in kinds.items() if kind in WIDE or kind in others}


def _widens(node: NodeProto) -> bool:
    """Whether a node may make wide integers of others."""
    return node.op_type == "CastLike" or (
        node.op_type == "Cast" and any(a.name == "to" and a.i in WIDE for a in node.attribute)
    )


def _hold_products(bounds: dict[str, Bound], graph: GraphProto, nodes: list[NodeProto]) -> None:
    constants = constants_of(graph) if nodes else {}
    for node in nodes:
        axes = axes_given(node, constants) if node.op_type == "ReduceProd" else None
        bound = bounds.get(node.input[0])
        if bound is not None and not reduces_nothing(node, axes):
            bounds[node.input[0]] = bound._replace(products=[*bound.products, axes])


def stays_within(model: ModelProto, concerns: Iterable[Concern]) -> bool:
    """Whether no other node reads wide integers of these nodes."""
    typed = infer(inlined(model)).graph
    kinds = {v.name: v.type.tensor_type.elem_type for v in (*typed.value_info, *typed.output)}
    read = {name for node in nodes_in(typed.node) for name in reads(node)}
    made = {name for concern in concerns for name in concern.node.output if name in read}
    return all(kinds.get(name, 0) not in WIDE | {0} for name in made)
