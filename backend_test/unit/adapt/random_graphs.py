# SPDX-License-Identifier: Apache-2.0
"""Random models: elementwise operators in the main graph, in subgraphs that read values from outside, in local functions.

Every value of a model has one element type; shapes are drawn so that they broadcast, and are left to the engine to infer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

FLOATS = ("float32", "float16", "float64")
TYPES = (*FLOATS, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
OPSETS = range(7, onnx.defs.onnx_opset_version() + 1)

UNARY = ("Abs", "Neg", "Identity", "Sign")
UNARY_FLOAT = (
    "Relu",
    "Sigmoid",
    "Floor",
    "Exp",
    "Softplus",
    "Tanh",
    "Elu",
    "Celu",
    "Ceil",
    "HardSigmoid",
    "ThresholdedRelu",
)
BINARY = ("Add", "Sub", "Mul", "Max", "Min")
SHAPES = ((2, 3), (3,), (0, 3), (2, 1), (2, 0), ())
_LOCAL = "local"

Shape = tuple[int, ...]
Draw = Callable[[Any], Any]


class Made(NamedTuple):
    """A random model, and inputs for it."""

    model: ModelProto
    arrays: list[np.ndarray]
    dtype: str


def numbers(dtype: str) -> list[float]:
    """Numbers that a type holds: small ones, so that a product stays small too, and what is not finite."""
    if dtype.startswith("u"):
        return [0, 1, 2, 3, 7, 100]
    if dtype.startswith("i"):
        return [-100, -3, -1, 0, 1, 2, 100]
    return [-3, -1, -0.5, -0.0, 0, 0.5, 1, 2, np.inf, -np.inf, np.nan]


def allowed(op_type: str, opset: int, dtype: str) -> bool:
    """Whether an operator has a version in this opset that takes the type."""
    try:
        schema = onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return False
    kind = TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))).lower()
    return any(f"tensor({kind})" in constraint.allowed_type_strs for constraint in schema.type_constraints)


class _Builder:
    """Draws the nodes of one model; values are known by name and shape."""

    def __init__(self, draw: Draw, opset: int, dtype: str) -> None:
        self.draw, self.opset, self.dtype = draw, opset, dtype
        self.kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        unary = [*UNARY, *(UNARY_FLOAT if dtype in FLOATS else ())]
        self.unary = [o for o in unary if allowed(o, opset, dtype)]
        # Max and Min broadcast since opset 8.
        self.binary = [o for o in BINARY if allowed(o, opset, dtype) and (opset > 7 or o not in ("Max", "Min"))]
        self.functions: list[FunctionProto] = []
        self.initializers: list[TensorProto] = []
        self.count = 0

    def constant(self, name: str, value: Any) -> None:
        self.initializers.append(onnx.numpy_helper.from_array(np.array(value), name))

    def fresh(self, word: str = "v") -> str:
        self.count += 1
        return f"{word}{self.count}"

    def value(self, name: str, shape: Sequence[int]) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, self.kind, shape)

    def pick(self, known: dict[str, Shape]) -> str:
        return str(self.draw(st.sampled_from(sorted(known))))

    def partners(self, known: dict[str, Shape], shape: Shape) -> dict[str, Shape]:
        """The values that broadcast to a shape without changing it."""
        return {name: s for name, s in known.items() if _broadcast(s, shape) == shape}

    def elementwise(self, known: dict[str, Shape], name: str = "") -> tuple[NodeProto, Shape]:
        """One operator on known values."""
        first = self.pick(known)
        inputs, shape = [first], known[first]
        fitting = {n: s for n, s in known.items() if _broadcast(s, shape) is not None}
        if self.binary and (not self.unary or self.draw(st.booleans())):
            inputs.append(self.pick(fitting))
            shape = _broadcast(shape, known[inputs[1]]) or ()
            op_type = self.draw(st.sampled_from(self.binary))
        else:
            op_type = self.draw(st.sampled_from(self.unary))
        return helper.make_node(op_type, inputs, [name or self.fresh()]), shape

    def chain(self, known: dict[str, Shape], shape: Shape, output: str) -> list[NodeProto]:
        """Operators that make a value of a shape out of known ones."""
        around = self.partners(known, shape)
        same = sorted(n for n, s in around.items() if s == shape)
        nodes, last = [], str(self.draw(st.sampled_from(same)))
        for _ in range(self.draw(st.integers(1, 2))):
            node, _ = self.elementwise({last: shape})
            if len(node.input) == 2:
                node.input[1] = self.pick(around)
            nodes.append(node)
            last = node.output[0]
        nodes[-1].output[0] = output
        return nodes

    def branches(self, known: dict[str, Shape]) -> tuple[list[NodeProto], str, Shape]:
        """An If whose branches read values from outside."""
        shape = known[self.pick(known)]
        condition, made = self.fresh("c"), self.fresh()
        graphs = []
        for _ in range(2):
            inner = self.fresh("b")
            graphs.append(helper.make_graph(self.chain(known, shape, inner), "branch", [], [self.value(inner, shape)]))
        self.constant(condition, self.draw(st.booleans()))
        nodes = [
            helper.make_node("If", [condition], [made], then_branch=graphs[0], else_branch=graphs[1]),
        ]
        return nodes, made, shape

    def loop(self, known: dict[str, Shape]) -> tuple[list[NodeProto], str, Shape]:
        """A Loop over one value; its body reads others from outside."""
        start = self.pick(known)
        shape = known[start]
        state, after, on, count, made = (self.fresh(w) for w in ("s", "t", "c", "n", "v"))
        step, go, again = (self.fresh(w) for w in ("i", "go", "again"))
        body = helper.make_graph(
            [helper.make_node("Identity", [go], [again]), *self.chain({**known, state: shape}, shape, after)],
            "body",
            [
                helper.make_tensor_value_info(step, TensorProto.INT64, []),
                helper.make_tensor_value_info(go, TensorProto.BOOL, []),
                self.value(state, shape),
            ],
            [helper.make_tensor_value_info(again, TensorProto.BOOL, []), self.value(after, shape)],
        )
        self.constant(on, True)
        self.constant(count, self.draw(st.integers(0, 2)))
        nodes = [
            helper.make_node("Loop", [count, on, start], [made], body=body),
        ]
        return nodes, made, shape

    def scan(self, known: dict[str, Shape]) -> tuple[list[NodeProto], str, Shape]:
        """A Scan along the first axis; its body reads values from outside. The reference knows none of no steps."""
        scanned = self.pick({n: s for n, s in known.items() if s and s[0]})
        shape = known[scanned]
        part, result, made = self.fresh("p"), self.fresh("r"), self.fresh()
        outer = {n: s for n, s in known.items() if n != scanned}
        body = helper.make_graph(
            self.chain({**outer, part: shape[1:]}, shape[1:], result),
            "body",
            [self.value(part, shape[1:])],
            [self.value(result, shape[1:])],
        )
        return [helper.make_node("Scan", [scanned], [made], body=body, num_scan_inputs=1)], made, shape

    def call(self, known: dict[str, Shape]) -> tuple[list[NodeProto], str, Shape]:
        """A call of a local function of two values."""
        first = self.pick(known)
        second = self.pick(self.partners(known, known[first]))
        name, made = f"f{len(self.functions)}", self.fresh()
        inside = _Builder(self.draw, self.opset, self.dtype)
        body = inside.chain({"a": known[first], "b": known[second]}, known[first], "result")
        opsets = [helper.make_opsetid("", self.opset)]
        self.functions.append(helper.make_function(_LOCAL, name, ["a", "b"], ["result"], body, opsets))
        return [helper.make_node(name, [first, second], [made], domain=_LOCAL)], made, known[first]

    def anything(self, known: dict[str, Shape]) -> tuple[list[NodeProto], str, Shape]:
        """A piece of the main graph: what makes one more value."""
        makers: list[Callable[[dict[str, Shape]], tuple[list[NodeProto], str, Shape]]] = [
            self.branches,
            self.loop,
            self.call,
        ]
        if self.opset >= 9 and any(s and s[0] for s in known.values()):
            makers.append(self.scan)
        if self.draw(st.integers(0, 2)):
            node, shape = self.elementwise(known)
            return [node], node.output[0], shape
        return self.draw(st.sampled_from(makers))(known)  # type: ignore[no-any-return]


@st.composite
def random_models(draw: Draw, types: Sequence[str] = TYPES, *, finite: bool = False) -> Made:
    """A model of a few nodes, in any opset that onnx knows from 7 on, and its inputs."""
    opset, dtype = draw(st.sampled_from(OPSETS)), draw(st.sampled_from(types))
    build = _Builder(draw, opset, dtype)
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=2, max_size=2))
    elements = st.sampled_from([n for n in numbers(dtype) if np.isfinite(n) or not finite])
    arrays = [
        np.array(draw(st.lists(elements, min_size=size, max_size=size)), dtype).reshape(shape)
        for shape in shapes
        for size in [int(np.prod(shape))]
    ]
    known = {f"x{i}": tuple(shape) for i, shape in enumerate(shapes)}
    inputs = [build.value(name, shape) for name, shape in known.items()]
    nodes: list[NodeProto] = []
    for _ in range(draw(st.integers(1, 4))):
        more, name, shape = build.anything(known)
        nodes += more
        known[name] = shape
    graph: GraphProto = helper.make_graph(nodes, "random", inputs, [build.value(name, known[name])], build.initializers)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(_LOCAL, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=build.functions)
    return Made(model, arrays, dtype)


def with_type(model: ModelProto, old: int, new: int) -> ModelProto:
    """The same model on another element type."""
    copy = ModelProto()
    copy.CopyFrom(model)

    def change(graph: GraphProto) -> None:
        for value in (*graph.input, *graph.output):
            if value.type.tensor_type.elem_type == old:
                value.type.tensor_type.elem_type = new
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    change(attribute.g)

    change(copy.graph)
    return copy


def _broadcast(one: Shape, other: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(one, other)
    except ValueError:
        return None
