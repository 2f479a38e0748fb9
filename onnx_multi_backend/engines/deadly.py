# SPDX-License-Identifier: Apache-2.0
"""Nodes that end an engine's process, as far as their constants tell. Looking costs no inference of types.

What only the data of a run tells is listed in docs/engine-crashes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import all_nodes, canonical, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.tensors import constant_tensor

#: Takes a node and the constants that it reads, None for an input that is not one; returns what of it ends the process, or None.
Deadly = Callable[[NodeProto, "list[np.ndarray | None]"], "str | None"]

#: Above this many bytes nothing is looked at.
_MOST = 1 << 20

_SIGNED = frozenset({TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64})
_NUMBERS = _SIGNED | {TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64}
_LOOKED_AT = _NUMBERS | {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.BOOL}

#: Operators that end a process for integers alone.
_OF_INTEGERS = frozenset({"Div", "Mod"})


def overflowing_quotient(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """Div or Mod of the smallest integer by -1, both known: the processor traps."""
    dividend, divisor = _pair(constants)
    if dividend is None or divisor is None or dividend.dtype.kind != "i":
        return None
    found = (dividend == np.iinfo(dividend.dtype).min) & (divisor == -1)
    return f"it divides the smallest {dividend.dtype} by -1" if found.any() else None


def divisor_of_zero(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """Div or Mod of integers by a known zero, whatever is divided."""
    dividend, divisor = _pair(constants)
    if divisor is None or divisor.dtype.kind not in "iu" or divisor.all():
        return None
    return "it divides an integer by 0" if dividend is None or dividend.size else None


def quotient_by_zero(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """Div or Mod of known integers by a known zero, of uint64 whatever is divided."""
    dividend, divisor = _pair(constants)
    known = dividend is not None or (divisor is not None and divisor.dtype == np.uint64)
    return divisor_of_zero(node, constants) if known else None


def range_without_end(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """Range with a known step of 0."""
    step = constants[2] if len(constants) > 2 else None
    return (
        "its step is 0, for which it may also run for ever"
        if step is not None and step.size and not step.any()
        else None
    )


def scattered_number(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """ScatterElements into a known number, which has no axis."""
    data = constants[0] if constants else None
    return "it scatters into a tensor without axes" if data is not None and not data.ndim else None


def no_stride(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """A window that does not move."""
    found = any(0 in attribute.ints for attribute in node.attribute if attribute.name == "strides")
    return "a stride is 0" if found else None


def vast_block(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """DepthToSpace by a block whose square is a multiple of 2**64."""
    size = next((a.i for a in node.attribute if a.name == "blocksize"), 1)
    return "the square of its blocksize is 0 in int64" if size > 0 and size * size % 2**64 == 0 else None


def negative_batch(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """GatherND that counts its batch axes from the end, which ONNX does not have."""
    found = any(attribute.name == "batch_dims" and attribute.i < 0 for attribute in node.attribute)
    return "its batch_dims is negative" if found else None


def unnamed_operand(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """An operator of any number of operands, one of which is named ""."""
    return 'it names an operand ""' if "" in node.input else None


def empty_blocks(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """Col2Im with a known block of no size."""
    blocks = constants[2] if len(constants) > 2 else None
    return "its blocks have no elements" if blocks is not None and not blocks.all() else None


def unique_of_nothing(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """Unique of a known tensor without elements."""
    data = constants[0] if constants else None
    return "its constant has no elements" if data is not None and not data.size else None


def grid_of_nothing(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """AffineGrid of a known tensor without elements."""
    theta = constants[0] if constants else None
    return "its constant theta has no elements" if theta is not None and not theta.size else None


def loss_without_targets(node: NodeProto, constants: list[np.ndarray | None]) -> str | None:
    """A loss with `ignore_index` whose known targets have no elements: it would be written with operators that end the process."""
    targets = constants[1] if len(constants) > 1 else None
    ignores = any(attribute.name == "ignore_index" for attribute in node.attribute)
    return "its constant targets have no elements" if ignores and targets is not None and not targets.size else None


def _pair(constants: list[np.ndarray | None]) -> tuple[np.ndarray | None, np.ndarray | None]:
    """The two operands where both fit each other, in the other's stead None."""
    if len(constants) != 2:
        return None, None
    one, other = constants
    if one is not None and other is not None:
        try:
            np.broadcast_shapes(one.shape, other.shape)
        except ValueError:  # the engine will say so
            return None, None
    return one, other


def find(contents: Contents, known: Mapping[str, Iterable[Deadly]]) -> list[tuple[NodeProto, str]]:
    """The nodes that end the process, and why.

    Parameters
    ----------
    known : mapping of str to iterable of Deadly
        By operator of the default domain.
    """
    if not contents.has(known):
        return []
    model = contents.model
    wanted = {name for node in contents.of(*known) for name in node.input}
    if any(node.op_type in known for function in model.functions for node in function.node):
        model = inlined(model)
        wanted = {name for node in all_nodes(model) if node.op_type in known for name in node.input}
    elif len(contents.nodes) == len(model.graph.node):  # there are no subgraphs
        defaults = {value.name for value in model.graph.input}
        constants = _initializers(model.graph, wanted - defaults)
        nodes = [(node, kind) for kind in ("Constant", *known) for node in contents.of(kind)]
        return list(_among(nodes, constants, known, wanted))
    return list(_within(model.graph, {}, known, wanted))


def _within(
    graph: GraphProto, outer: Mapping[str, TensorProto], known: Mapping[str, Iterable[Deadly]], wanted: set[str]
) -> Iterator[tuple[NodeProto, str]]:
    """The nodes of a graph and its subgraphs; of the constants, those that are `wanted`, by name, are read."""
    constants = {**outer, **_initializers(graph, wanted)}
    for value in graph.input:  # it hides an outer one; an initializer of its name is a default
        constants.pop(value.name, None)
    for node in graph.node:
        if node.op_type == "Constant":
            _note(node, constants, wanted)
        for inner in subgraphs(node):
            yield from _within(inner, constants, known, wanted)
    yield from _among(((node, node.op_type) for node in graph.node), constants, known, wanted)


def _initializers(graph: GraphProto, wanted: set[str]) -> dict[str, TensorProto]:
    return {t.name: t for t in graph.initializer if t.name in wanted}


def _among(
    nodes: Iterable[tuple[NodeProto, str]],
    constants: dict[str, TensorProto],
    known: Mapping[str, Iterable[Deadly]],
    wanted: set[str],
) -> Iterator[tuple[NodeProto, str]]:
    """The nodes of a graph, each given with its operator."""
    values: dict[str, np.ndarray | None] = {}
    for node, operator in nodes:
        if operator == "Constant":
            _note(node, constants, wanted)
        elif operator in known and not canonical(node.domain):
            if operator in _OF_INTEGERS and not any(_is_integer(constants.get(name)) for name in node.input):
                continue
            given = [_value(name, constants, values) for name in node.input]
            for deadly in known[operator]:
                if (words := deadly(node, given)) is not None:
                    yield node, words
                    break


def _is_integer(tensor: TensorProto | None) -> bool:
    return tensor is not None and tensor.data_type in _NUMBERS


def _note(node: NodeProto, constants: dict[str, TensorProto], wanted: set[str]) -> None:
    if node.output and node.output[0] in wanted and (tensor := constant_tensor(node)) is not None:
        constants[node.output[0]] = tensor


def _value(name: str, constants: Mapping[str, TensorProto], values: dict[str, np.ndarray | None]) -> np.ndarray | None:
    if name not in values:
        tensor = constants.get(name)
        readable = (
            tensor is not None
            and tensor.data_location != TensorProto.EXTERNAL
            and tensor.data_type in _LOOKED_AT
            and tensor.ByteSize() <= _MOST
        )
        try:
            values[name] = numpy_helper.to_array(tensor) if tensor is not None and readable else None
        except ValueError:  # it has not as many elements as its shape says: the engine will say so
            values[name] = None
    return values[name]
