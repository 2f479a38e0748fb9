# SPDX-License-Identifier: Apache-2.0
"""Random Loops, Scans and Ifs, one in another: states that swap, rows that no result needs, values from outside, results that nothing reads."""

from __future__ import annotations

import random

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from backend_test.search.graphs.generate import Made
from backend_test.search.graphs.values import FLOATS, np_dtype, to_tensor

#: Max and Min of integers came with 12.
OPSETS = (12, 13, 16, 17, 19, 21)
_KINDS = {
    TensorProto.FLOAT: 6,
    TensorProto.FLOAT16: 1,
    TensorProto.INT64: 2,
    TensorProto.INT32: 1,
    TensorProto.UINT32: 1,
}
#: The number of rows, and of steps, in each of the two runs.
_LENGTHS = ((3, 5), (4, 2), (2, 3), (3, 3), (1, 4))
_STEPS = ((3, 1), (2, 4), (1, 3), (2, 0))
#: Of two vectors, and of one.
_TWO = ("Add", "Sub", "Mul", "Max", "Min")
_ONE = ("Identity", "Identity", "Abs")
_ONE_OF_FLOATS = ("Neg", "Relu", "Sigmoid", "Tanh")


class _Writer:
    """Writes nodes whose operands and results are vectors of one length and type.

    Attributes
    ----------
    inputs, constants : dict
        What the model needs of them, by name.
    """

    def __init__(self, rng: random.Random, kind: int) -> None:
        self.rng = rng
        self.kind = kind
        self.size = rng.choice((1, 2, 3))
        self.inputs: dict[str, ValueInfoProto] = {}
        self.constants: dict[str, np.ndarray] = {}
        self._count = 0

    @property
    def floats(self) -> bool:
        return self.kind in FLOATS

    def fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def vector(self, name: str) -> ValueInfoProto:
        return helper.make_tensor_value_info(name, self.kind, [self.size])

    def numbers(self, *shape: int) -> np.ndarray:
        """A constant or input of the type."""
        draw = np.random.default_rng(self.rng.randrange(1 << 32))
        dtype = np_dtype(self.kind)
        if self.floats:
            return (draw.standard_normal(shape) * 0.75).astype(dtype)
        low = 0 if dtype.kind == "u" else -3
        return draw.integers(low, 4, shape).astype(dtype)

    def constant(self, name: str, array: np.ndarray) -> str:
        self.constants.setdefault(name, array)
        return name

    def arithmetic(self, values: list[str], nodes: list[NodeProto], count: int) -> list[str]:
        """The values with the results of some more nodes."""
        values = list(values)
        for _ in range(count):
            values.append(self._node(values, nodes))
        return values

    def _node(self, values: list[str], nodes: list[NodeProto]) -> str:
        rng, made = self.rng, self.fresh()
        one, other, form = rng.choice(values), rng.choice(values), rng.random()
        if form < 0.45:
            nodes.append(helper.make_node(rng.choice(_TWO), [one, other], [made]))
        elif form < 0.65:
            nodes.append(helper.make_node(rng.choice(_ONE + (_ONE_OF_FLOATS if self.floats else ())), [one], [made]))
        elif form < 0.73:
            whole = self.constant("whole", np.array([self.size]))
            nodes.append(helper.make_node(rng.choice(("Expand", "Reshape")), [one, whole], [made]))
        elif form < 0.82:
            below = self.fresh()
            nodes.append(helper.make_node("Less", [one, other], [below]))
            nodes.append(helper.make_node("Where", [below, other, one], [made]))
        elif form < 0.9 and self.floats:
            if rng.random() < 0.5:
                nodes.append(helper.make_node("Softmax", [one], [made], axis=0))
            else:
                square = self.constant("square", self.numbers(self.size, self.size))
                nodes.append(helper.make_node("MatMul", [one, square], [made]))
        else:
            shape, number = self.fresh(), self.fresh()
            nodes.append(helper.make_node("Shape", [one], [shape]))
            nodes.append(helper.make_node("Cast", [shape], [number], to=self.kind))
            nodes.append(helper.make_node("Add", [other, number], [made]))
        return made

    def held(self, values: list[str], nodes: list[NodeProto], depth: int) -> tuple[list[str], list[str]]:
        """An If, Loop or Scan that reads some of these values: its vectors, and what it collects of each step."""
        operator = self.rng.choice(("If", "Loop", "Loop", "Scan", "Scan"))
        if operator == "If":
            return self._branches(values, nodes, depth), []
        states, collected = self.rng.randint(1, 3), self.rng.randint(0, 2)
        before, after = [self.fresh() for _ in range(states)], []
        given = [self.vector(name) for name in before]
        inside: list[NodeProto] = []
        read = before + [name for name in values if self.rng.random() < 0.4]
        if operator == "Scan":
            rows = [self.fresh() for _ in range(self.rng.randint(1, 2))]
            given += [self.vector(name) for name in rows]
            read += rows
        else:
            step, go, again = self.fresh(), self.fresh(), self.fresh()
            given[:0] = [
                helper.make_tensor_value_info(step, TensorProto.INT64, []),
                helper.make_tensor_value_info(go, TensorProto.BOOL, []),
            ]
            after.append(self._again(step, go, again, inside))
        made = self.arithmetic(read, inside, self.rng.randint(1, 4))
        if depth and self.rng.random() < 0.5:
            made += self.held(made, inside, depth - 1)[0]
        own = [name for name in made if name not in values]
        after += [self.vector(self._end(own, inside)) for _ in range(states + collected)]
        body = helper.make_graph(inside, "step", given, after)
        results = [self.fresh() for _ in range(states + collected)]
        first = [self.rng.choice(values) for _ in range(states)]
        if operator == "Scan":
            nodes.append(self._scan(first, len(rows), collected, results, body))
        else:
            nodes.append(helper.make_node("Loop", [self._trips(), "", *first], results, body=body))
        return results[:states], results[states:]

    def _end(self, values: list[str], nodes: list[NodeProto]) -> str:
        """A value of its own for an output of a body."""
        made = self.fresh()
        nodes.append(helper.make_node("Identity", [self.rng.choice(values)], [made]))
        return made

    def _again(self, step: str, go: str, again: str, nodes: list[NodeProto]) -> ValueInfoProto:
        """Whether a Loop goes on: as long as it was told to, or up to a step."""
        if self.rng.random() < 0.3:
            nodes.append(helper.make_node("Less", [step, self.constant("last", np.array(1))], [again]))
        else:
            nodes.append(helper.make_node("Identity", [go], [again]))
        return helper.make_tensor_value_info(again, TensorProto.BOOL, [])

    def _trips(self) -> str:
        if self.rng.random() < 0.5:
            return self.constant("three", np.array(3))
        self.inputs["steps"] = helper.make_tensor_value_info("steps", TensorProto.INT64, [])
        return "steps"

    def _scan(self, first: list[str], rows: int, collected: int, results: list[str], body: GraphProto) -> NodeProto:
        axes, turned, directions = ([self.rng.choice((0, 0, 1)) for _ in range(n)] for n in (rows, collected, rows))
        attributes = {"scan_input_axes": axes, "scan_output_axes": turned, "scan_input_directions": directions}
        read = []
        for axis in axes:
            name = "columns" if axis else "rows"
            shape = [self.size, "n"] if axis else ["n", self.size]
            self.inputs[name] = helper.make_tensor_value_info(name, self.kind, shape)
            read.append(name)
        given = {name: value for name, value in attributes.items() if any(value)}
        return helper.make_node("Scan", [*first, *read], results, body=body, num_scan_inputs=rows, **given)

    def _branches(self, values: list[str], nodes: list[NodeProto], depth: int) -> list[str]:
        count = self.rng.randint(1, 2)
        branches = []
        for name in ("then", "else"):
            inside: list[NodeProto] = []
            made = self.arithmetic(values, inside, self.rng.randint(1, 3))
            if depth and self.rng.random() < 0.5:
                made += self.held(made, inside, depth - 1)[0]
            own = [value for value in made if value not in values]
            ends = [self.vector(self._end(own, inside)) for _ in range(count)]
            branches.append(helper.make_graph(inside, name, [], ends))
        condition, results = self.fresh(), [self.fresh() for _ in range(count)]
        self.inputs["chosen"] = helper.make_tensor_value_info("chosen", TensorProto.BOOL, [])
        nodes.append(helper.make_node("Not", ["chosen"], [condition]))
        nodes.append(helper.make_node("If", [condition], results, then_branch=branches[0], else_branch=branches[1]))
        return results


def random_bodies(rng: random.Random) -> Made:
    """Draw a model; the same random numbers make the same."""
    opset = rng.choice(OPSETS)
    kind = rng.choices(list(_KINDS), list(_KINDS.values()))[0]
    writer = _Writer(rng, kind)
    writer.inputs["x"] = writer.vector("x")
    nodes: list[NodeProto] = []
    values = writer.arithmetic(["x", writer.constant("k", writer.numbers(writer.size))], nodes, rng.randint(0, 2))
    collected: list[str] = []
    for depth in (rng.choice((0, 0, 1, 2)), 0)[: rng.choice((1, 1, 2))]:
        made, rows = writer.held(values, nodes, depth)
        values += made
        collected += rows
    last = values[-1]
    values = writer.arithmetic(values, nodes, rng.randint(0, 2))
    computed = [name for name in values if name not in ("x", "k")]
    wanted = list(dict.fromkeys([last, *(rng.choice(computed) for _ in range(rng.randint(0, 2)))]))
    outputs = [writer.vector(name) for name in wanted]
    read = [name for name in collected if rng.random() < 0.6]
    outputs += [helper.make_tensor_value_info(name, kind, [f"{name}_0", f"{name}_1"]) for name in read]
    constants = [to_tensor(array, name) for name, array in writer.constants.items()]
    graph = helper.make_graph(nodes, "bodies", list(writer.inputs.values()), outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    lengths, steps = rng.choice(_LENGTHS), rng.choice(_STEPS)
    feeds = tuple(_feeds(writer, lengths[run], steps[run]) for run in (0, 1))
    return Made(model, (feeds[0], feeds[1]))


def _feeds(writer: _Writer, length: int, steps: int) -> dict[str, np.ndarray]:
    given = {
        "x": (writer.size,),
        "rows": (length, writer.size),
        "columns": (writer.size, length),
    }
    feeds = {name: writer.numbers(*given[name]) for name in writer.inputs if name in given}
    if "steps" in writer.inputs:
        feeds["steps"] = np.array(steps)
    if "chosen" in writer.inputs:
        feeds["chosen"] = np.array(writer.rng.random() < 0.5)
    return feeds
