# SPDX-License-Identifier: Apache-2.0
"""A graph in the making: values that are known by type and by their shapes in the two runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from backend_test.search.graphs import values as v

#: A dimension: its size in the first run and in the second. Two are equal where both are.
Dim = tuple[int, int]
Dims = tuple[Dim, ...]


class NoFitError(Exception):
    """The drawn operator cannot be put here; another is drawn."""


class Value(NamedTuple):
    """A value of the graph.

    Attributes
    ----------
    types : TypeProto, TypeProto
        Its type in the first run and in the second.
    data : (array, array), optional
        What it holds in each run, where that is known.
    """

    name: str
    types: tuple[TypeProto, TypeProto]
    data: tuple[np.ndarray, np.ndarray] | None = None
    constant: bool = False

    @property
    def kind(self) -> int:
        """The element type of a tensor; 0 for anything else."""
        return int(self.types[0].tensor_type.elem_type)

    @property
    def dims(self) -> Dims | None:
        """The shape of a tensor, None where it is not known."""
        one, two = (_shape(t) for t in self.types)
        return None if one is None or two is None or len(one) != len(two) else tuple(zip(one, two, strict=True))


def _shape(proto: TypeProto) -> tuple[int, ...] | None:
    if proto.WhichOneof("value") != "tensor_type" or not proto.tensor_type.HasField("shape"):
        return None
    dims = proto.tensor_type.shape.dim
    return tuple(d.dim_value for d in dims) if all(d.HasField("dim_value") for d in dims) else None


def _has_shape(proto: TypeProto) -> bool:
    return proto.WhichOneof("value") != "tensor_type" or proto.tensor_type.HasField("shape")


def shape_of(dims: Dims, run: int) -> tuple[int, ...]:
    return tuple(d[run] for d in dims)


def static(*sizes: int) -> Dims:
    return tuple((s, s) for s in sizes)


class Builder:
    """Draws values and keeps nodes; a nested one makes a subgraph and sees the values around it.

    Parameters
    ----------
    rng : random.Random
        Everything that is random.
    opset : int
    dynamic : bool
        Whether dimensions of inputs may be symbolic, and differ between the two runs.
    profiles : sequence of str
        How numbers are drawn.
    constants : float
        How probably a new operand is a constant instead of an input.
    kinds : frozenset of int
        The element types that operands of recipes may have; all when empty.
    """

    def __init__(
        self,
        rng: random.Random,
        opset: int,
        *,
        dynamic: bool = False,
        profiles: Sequence[str] = ("ordinary",),
        constants: float = 0.4,
        kinds: frozenset[int] = frozenset(),
        outer: Builder | None = None,
    ) -> None:
        self.rng, self.opset, self.dynamic, self.outer = rng, opset, dynamic, outer
        self.profiles, self.constants, self.kinds = tuple(profiles), constants, kinds
        self.root: Builder = outer.root if outer is not None else self
        #: See `generate.Plan`.
        self.simple: bool = outer.simple if outer is not None else False
        #: Whether local functions may be called here.
        self.calls: bool = outer is None
        self.values: list[Value] = [] if outer is None else list(outer.values)
        self.nodes: list[NodeProto] = []
        self.inputs: list[ValueInfoProto] = []
        self.feeds: list[tuple[np.ndarray, np.ndarray]] = []
        self.initializers: list[TensorProto] = []
        self.functions: list[onnx.FunctionProto] = []
        self.count = 0
        sizes = (1, 2, 2, 3, 3, 4, 5)
        self.palette: list[Dim] = outer.palette if outer is not None else []
        if outer is None:
            for _ in range(4):
                one = rng.choice(sizes)
                self.palette.append((one, rng.choice(sizes)) if dynamic and rng.random() < 0.6 else (one, one))
            if rng.random() < 0.08:
                self.palette.append((0, rng.choice((0, 2))) if dynamic else (0, 0))

    def fresh(self, word: str = "v") -> str:
        self.root.count += 1
        return f"{word}{self.root.count}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def dim(self, least: int = 0) -> Dim:
        """A dimension of at least this size in both runs."""
        fitting = [d for d in self.palette if min(d) >= least]
        return self.rng.choice(fitting) if fitting else (least, least)

    def shape(self, ranks: Sequence[int] = (0, 1, 1, 2, 2, 3, 3, 4), least: int = 0) -> Dims:
        return tuple(self.dim(least) for _ in range(self.rng.choice(ranks)))

    def profile(self) -> str:
        return self.rng.choice(self.profiles)

    def drawn(self, kind: int, dims: Dims, profile: str | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays, one for each run."""
        profile = profile or self.profile()
        made = []
        for run in (0, 1):
            shape = shape_of(dims, run)
            made.append(v.numbers(self.rng, kind, int(np.prod(shape, dtype=int)), profile).reshape(shape))
        return made[0], made[1]

    def operand(
        self, data: tuple[np.ndarray, np.ndarray], *, constant: bool | None = None, always: bool = False
    ) -> Value:
        """A new operand with this content: a graph input, an initializer or a Constant.

        Parameters
        ----------
        constant : bool, optional
            Drawn when None. A constant holds the first run's content, and both runs must have the same shape.
        always : bool
            The content of the first run counts for both, input or not.
        """
        if always:
            data = data[0], data[0]
        same = data[0].shape == data[1].shape
        if constant is None:
            constant = same and self.chance(self.constants)
        if not constant and self.outer is not None:
            if not same or self.simple:
                raise NoFitError("a subgraph takes no inputs of its own")
            constant = True
        return self._constant(data[0]) if constant else self._input(data)

    def _constant(self, array: np.ndarray) -> Value:
        name = self.fresh("c")
        tensor = v.to_tensor(array, name)
        if self.chance(0.15) and (self.opset >= 9 or tensor.data_type in v.FLOATS):
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        else:
            (self if self.chance(0.5) else self.root).initializers.append(tensor)
        proto = helper.make_tensor_type_proto(tensor.data_type, array.shape)
        return Value(name, (proto, proto), (array, array), constant=True)

    def _input(self, data: tuple[np.ndarray, np.ndarray]) -> Value:
        name, kind = f"x{len(self.inputs)}", v.onnx_kind(data[0].dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, self.declared(data[0].shape, data[1].shape, name)))
        self.feeds.append(data)
        types = tuple(helper.make_tensor_type_proto(kind, a.shape) for a in data)
        return self.add(Value(name, (types[0], types[1]), data))

    def declared(self, one: Sequence[int], two: Sequence[int], name: str) -> list[int | str | None] | None:
        """The dimensions as the model declares them."""
        dims: list[int | str | None] = []
        for axis, (a, b) in enumerate(zip(one, two, strict=True)):
            if a == b and not (self.dynamic and self.chance(0.5)):
                dims.append(a)
            else:
                dims.append(self.rng.choice((f"d{a}_{b}", f"{name}_{axis}", None)))
        return None if self.dynamic and self.chance(0.04) else dims

    def add(self, value: Value) -> Value:
        self.values.append(value)
        return value

    def node(
        self, op_type: str, inputs: Sequence[Value | None], outputs: int = 1, domain: str = "", **attributes: object
    ) -> list[Value]:
        """Add a node; its outputs' types come from ONNX's inference.

        Raises
        ------
        NoFitError
            ONNX says that such a node is not valid.
        """
        names = [self.fresh() for _ in range(outputs)]
        node = helper.make_node(op_type, [i.name if i else "" for i in inputs], names, domain=domain, **attributes)
        schema = onnx.defs.get_schema(op_type, self.opset, domain)
        types = [self.inferred(schema, node, inputs, run) for run in (0, 1)]
        self.nodes.append(node)
        return [self.add(Value(n, (types[0][n], types[1][n]))) for n in names]

    def inferred(
        self, schema: onnx.defs.OpSchema, node: NodeProto, inputs: Sequence[Value | None], run: int
    ) -> dict[str, TypeProto]:
        """The types of a node's outputs in one run."""
        given = [i for i in inputs if i is not None]
        known = {i.name: v.to_tensor(i.data[run], i.name) for i in given if i.data is not None}
        opsets = [helper.make_opsetid("", self.opset)]
        try:
            types = onnx.shape_inference.infer_node_outputs(
                schema, node, {i.name: i.types[run] for i in given}, known, opset_imports=opsets, ir_version=10
            )
        except (onnx.shape_inference.InferenceError, onnx.checker.ValidationError, RuntimeError, ValueError) as error:
            raise NoFitError(f"{node.op_type}: {error}") from error
        if any(name in types and not _has_shape(types[name]) for name in node.output):
            types.update(self._by_function(node, given, known, run))
        for name in node.output:
            if name and (name not in types or types[name].WhichOneof("value") is None):
                raise NoFitError(f"{node.op_type}: the type of {name} is not inferred")
            if (
                name
                and types[name].HasField("tensor_type")
                and any(d.dim_value < 0 or d.dim_value > 100_000 for d in types[name].tensor_type.shape.dim)
            ):
                raise NoFitError(f"{node.op_type}: the shape of {name} is none")
        return types

    def _by_function(
        self, node: NodeProto, given: Sequence[Value], known: dict[str, TensorProto], run: int
    ) -> dict[str, TypeProto]:
        """The types that inference on a model of the node alone gives: it knows the bodies of functions."""
        inputs = [
            ValueInfoProto(name=n, type=t) for n, t in {i.name: i.types[run] for i in given}.items() if n not in known
        ]
        outputs = [ValueInfoProto(name=n) for n in node.output]
        graph = helper.make_graph([node], "node", inputs, outputs, list(known.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)
        try:
            found = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph.output
        except (onnx.shape_inference.InferenceError, RuntimeError) as error:
            raise NoFitError(f"{node.op_type}: {error}") from error
        return {o.name: o.type for o in found if o.type.WhichOneof("value")}
