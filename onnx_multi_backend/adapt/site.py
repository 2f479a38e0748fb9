# SPDX-License-Identifier: Apache-2.0
"""One node that an engine lacks, as a rule sees it, and the body that takes its place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from onnx_multi_backend.adapt.intervals.constant_values import of_tensor
from onnx_multi_backend.adapt.intervals.hints import KNOWN, read_hint
from onnx_multi_backend.adapt.intervals.values import Value, of_type
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import opset_imports, opset_versions
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import numpy_dtype

#: The oldest opset that rules write their bodies in.
BODY_OPSET = 18

#: The width of each integer type.
INTEGER_BITS: Mapping[int, int] = {
    TensorProto.INT8: 8,
    TensorProto.UINT8: 8,
    TensorProto.INT16: 16,
    TensorProto.UINT16: 16,
    TensorProto.INT32: 32,
    TensorProto.UINT32: 32,
    TensorProto.INT64: 64,
    TensorProto.UINT64: 64,
}


class Site:
    """A model of one node: what a rule looks at.

    Attributes
    ----------
    model : onnx.ModelProto
    node : onnx.NodeProto
    opset : int
        Of the node's domain.
    target : int
        The opset of the default domain that the engine is to get.
    held : bool
        Whether it stands in a subgraph: whoever takes the node that holds it computes it too.
    """

    def __init__(self, model: ModelProto, target: int = 0, *, held: bool = False) -> None:
        self.model = model
        self.target = target
        self.held = held
        self.node: NodeProto = model.graph.node[0]
        self.domain = canonical(self.node.domain)
        self.opset = self.opsets.get(self.domain, 1)
        self._types = {v.name: v.type for v in (*model.graph.input, *model.graph.output)}
        self._constants = {t.name: t for t in model.graph.initializer}

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.node.op_type

    @property
    def opsets(self) -> dict[str, int]:
        """The opset of each domain that the model imports."""
        return opset_versions(self.model)

    @functools.cached_property
    def schema(self) -> onnx.defs.OpSchema | None:
        """The operator's schema in this opset; None where onnx has none."""
        try:
            return onnx.defs.get_schema(self.op_type, self.opset, self.domain)
        except onnx.defs.SchemaError:
            return None

    def is_(self, *operators: str) -> bool:
        """Whether the node is one of these operators of the default domain."""
        return not self.domain and self.op_type in operators

    def attribute(self, name: str, default: Any = None) -> Any:
        """An attribute's value; bytes as text."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                value = helper.get_attribute_value(attribute)
                return value.decode(errors="replace") if isinstance(value, bytes) else value
        return default

    def attributes(self, *without: str) -> dict[str, Any]:
        """All attributes but these."""
        return {a.name: helper.get_attribute_value(a) for a in self.node.attribute if a.name not in without}

    def has_input(self, index: int) -> bool:
        """Whether an input is given."""
        return index < len(self.node.input) and bool(self.node.input[index])

    def has_output(self, index: int) -> bool:
        """Whether an output is wanted."""
        return index < len(self.node.output) and bool(self.node.output[index])

    def input(self, index: int) -> str:
        """The name of an input; empty where it is not given."""
        return self.node.input[index] if index < len(self.node.input) else ""

    def type(self, name: str) -> TypeProto | None:
        """The type of a value."""
        if name in self._constants:
            tensor = self._constants[name]
            return helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        return self._types.get(name)

    def elem_type(self, name: str) -> int:
        """The element type of a tensor; 0 for what is not a tensor."""
        found = self.type(name)
        return found.tensor_type.elem_type if found is not None and found.HasField("tensor_type") else 0

    def rank(self, name: str) -> int | None:
        """The rank of a tensor; None where it is not known."""
        found = self.type(name)
        if found is None or not found.HasField("tensor_type") or not found.tensor_type.HasField("shape"):
            return None
        return len(found.tensor_type.shape.dim)

    def shape(self, name: str) -> list[int | None] | None:
        """The shape of a tensor, None for a size that is not known; None where the rank is not known."""
        if self.rank(name) is None:
            return None
        dims = self.type(name).tensor_type.shape.dim  # type: ignore[union-attr]
        return [d.dim_value if d.HasField("dim_value") else None for d in dims]

    def value(self, name: str) -> Value:
        """What the elements of an input lie between."""
        if name in self._constants:
            return of_tensor(self._constants[name])
        told = next((read_hint(v) for v in self.model.graph.input if v.name == name), None)
        return told or of_type(self.elem_type(name))

    @property
    def constants(self) -> list[str]:
        """The inputs that are known before anything runs."""
        return list(self._constants)

    def is_known(self, name: str) -> bool:
        """Whether an input is known before anything runs, be it too large for `constant`."""
        large = any(v.name == name and v.doc_string == KNOWN for v in self.model.graph.input)
        return name in self._constants or large

    def initializer(self, name: str) -> TensorProto | None:
        """The tensor behind an input that is known before anything runs."""
        return self._constants.get(name)

    def constant(self, name: str) -> np.ndarray[Any, Any] | None:
        """The value of an input that is known before anything runs."""
        return numpy_helper.to_array(self._constants[name]) if name in self._constants else None


class Body:
    """Builds what takes a node's place.

    Rules use forms of operators that mean the same in opset 18 and in all newer ones.

    ``body("Mul", a, b, axis=1)`` adds a node and returns the name of its output; with ``outputs=n`` a list of names.
    """

    def __init__(self, site: Site, opsets: Mapping[str, int] | None = None) -> None:
        self._site = site
        self._opsets = dict(opsets or {"": max(site.target, BODY_OPSET)})
        self._nodes: list[NodeProto] = []
        self._count = 0

    def add(self, node: NodeProto) -> list[str]:
        """Add a node as it is, its outputs renamed; returns their new names, empty where an output is not wanted."""
        own = NodeProto()
        own.CopyFrom(node)
        for i, name in enumerate(node.output):
            own.output[i] = self._fresh() if name else ""
        self._nodes.append(own)
        return list(own.output)

    def __call__(
        self,
        op_type: str,
        *inputs: str,
        outputs: int | None = None,
        domain: str = "",
        name: str = "",
        **attributes: Any,
    ) -> Any:
        names = [self._fresh() for _ in range(outputs or 1)]
        empty = [key for key, value in attributes.items() if isinstance(value, list) and not value]
        given = {key: value for key, value in attributes.items() if key not in empty}
        node = helper.make_node(op_type, list(inputs), names, name=name, domain=domain, **given)
        for key in empty:  # their type is not seen from the value
            kind = str(onnx.defs.get_schema(op_type, domain).attributes[key].type).rpartition(".")[2]
            node.attribute.add(name=key, type=onnx.AttributeProto.AttributeType.Value(kind))
        self._nodes.append(node)
        return names[0] if outputs is None else names

    def constant(self, value: Any, elem_type: int = TensorProto.UNDEFINED) -> str:
        """A constant tensor of an element type, or of the array's own."""
        array = np.asarray(value) if not elem_type else np.asarray(value).astype(numpy_dtype(elem_type))
        return str(self("Constant", value=numpy_helper.from_array(array)))

    def ints(self, *values: int) -> str:
        """A constant int64 tensor of rank 1."""
        return self.constant(np.array(values, np.int64))

    def cast(self, value: str, elem_type: int) -> str:
        """A Cast that only converts a type: it does not count as a node of the user's model."""
        return str(self("Cast", value, name=f"{CAST}{self._count}", to=elem_type))

    def zeros(self, shape: str, elem_type: int) -> str:
        """A tensor of zeros, of a shape that is known only when the model runs, or may hold no elements."""
        zero = numpy_helper.from_array(np.zeros(1, numpy_dtype(elem_type)))
        return str(self("ConstantOfShape", shape, value=zero))

    def within(self, value: str, low: str, high: str) -> str:
        """A value held between two others. NaN becomes the lower one on every kernel, so that an index leads nowhere else."""
        raised = self("Where", self("Less", low, value), value, low)
        return str(self("Where", self("Less", raised, high), raised, high))

    def finish(self, *results: str) -> ModelProto:
        """The model with these values as the node's outputs; empty where an output is not wanted."""
        wanted = [(result, output) for result, output in zip(results, self._site.node.output, strict=False) if output]
        own = {name for node in self._nodes for name in node.output}
        renamed: dict[str, str] = {}
        for result, output in wanted:
            if result in own and result not in renamed:
                renamed[result] = output
            else:
                self._nodes.append(helper.make_node("Identity", [result], [output]))
        for node in self._nodes:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name in renamed:
                        names[i] = renamed[name]
        model = ModelProto()
        model.CopyFrom(self._site.model)
        del model.graph.node[:], model.opset_import[:]
        model.graph.node.extend(self._nodes)
        model.opset_import.extend(opset_imports(self._opsets))
        return model

    def _fresh(self) -> str:
        self._count += 1
        return f"v{self._count}"


#: A rule yields models of the same inputs and outputs that do what the node does, the best first; or nothing.
Rule = Callable[[Site], Iterator[ModelProto]]
