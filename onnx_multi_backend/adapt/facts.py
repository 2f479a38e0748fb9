# SPDX-License-Identifier: Apache-2.0
"""What a model says without inference."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from onnx_multi_backend.adapt.empty_tensors import cut_to_nothing, holds_empty_data
from onnx_multi_backend.adapt.float_names import FloatSearch, float_names
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, subgraphs

#: A tensor above this many bytes is not a constant that a model of one node carries along.
SMALL_BYTES = 4096


#: The element types of what Constants hold in other attributes than a tensor.
_FORMS = {"value_float": TensorProto.FLOAT, "value_int": TensorProto.INT64, "value_string": TensorProto.STRING}
#: Attributes that name an element type.
_NAMING = frozenset({"dtype", "output_datatype", "output_dtype", "precision", "softmax_precision", "stash_type", "to"})


class Facts:
    """What a model says without inference.

    Attributes
    ----------
    model : onnx.ModelProto
    contents : Contents
    """

    def __init__(self, model: ModelProto, contents: Contents | None = None) -> None:
        self.model = model
        self.contents = contents if contents is not None and contents.model is model else Contents(model)
        self._held: dict[int, bool] = {}

    @functools.cached_property
    def opset(self) -> int:
        """The opset of the default domain."""
        return {canonical(o.domain): o.version for o in self.model.opset_import}.get("", 1)

    @functools.cached_property
    def constants(self) -> Mapping[str, TensorProto]:
        """The small tensors of the graph and its subgraphs by name; where a name stands twice, any of them."""
        return dict(self.small)

    def constants_of(self, names: Collection[str]) -> Mapping[str, TensorProto]:
        """Those of these names."""
        known = self.contents.constants if names else {}
        return {name: known[name] for name in names if name in known and _is_small(known[name])}

    @functools.cached_property
    def small(self) -> list[tuple[str, TensorProto]]:
        """The same, each of those that share a name."""
        return [(name, tensor) for name, tensor in self.contents.named if _is_small(tensor)]

    @functools.cached_property
    def namesakes(self) -> Mapping[str, list[TensorProto]]:
        """The same by name, all of those that share one."""
        found: dict[str, list[TensorProto]] = {}
        for name, tensor in self.small:
            found.setdefault(name, []).append(tensor)
        return found

    def may_know(self, node: NodeProto, place: int) -> bool:
        """Whether an input of a node may be a small constant; what a local function is given may be anything."""
        given = len(node.input) > place and node.input[place] != ""
        return given and (bool(self.model.functions) or node.input[place] in self.constants)

    def before_identities(self, name: str) -> str:
        """The value that Identity nodes make this one of: exporters write them for weights that layers share.

        Itself beside functions and subgraphs.
        """
        seen: set[str] = set()
        while name in self._identities and name not in seen:
            seen.add(name)  # an invalid model may go round in a circle
            name = self._identities[name]
        return name

    @functools.cached_property
    def _identities(self) -> Mapping[str, str]:
        if self.model.functions or self.contents.holding:  # a name may mean something else in each graph
            return {}
        plain = (node for node in self.contents.of("Identity") if not canonical(node.domain))
        return {node.output[0]: node.input[0] for node in plain if node.input and node.output}

    @functools.cached_property
    def certain(self) -> Mapping[str, TensorProto]:
        """The small tensors of which a node reads just this one by its name. None where there are local functions."""
        if self.model.functions:  # a name means something else in each
            return {}
        graphs = [self.model.graph, *(g for node in self.contents.holding for g in subgraphs(node))]
        named = [
            *((t.name, t) for graph in graphs for t in graph.initializer),
            *self.contents.of_constants,
        ]
        times = Counter([*(name for name, _ in named), *(v.name for graph in graphs for v in graph.input)])
        return {name: tensor for name, tensor in named if times[name] == 1 and _is_small(tensor)}

    @functools.cached_property
    def known(self) -> frozenset[str]:
        """The values that are known before anything runs, in the graph and its subgraphs, whatever their size."""
        constants = (node.output[0] for node in self.contents.of("Constant"))
        return frozenset([*constants, *(name for name, _ in self.contents.named)])

    @functools.cached_property
    def nodes_of_constants(self) -> list[NodeProto]:
        """The nodes that read nothing but constants and what such nodes compute."""
        known, found = {"", *self.known}, []
        for node, read in zip(self.contents.nodes, self.contents.reads, strict=True):
            if known.issuperset(read) and any(read):
                known.update(node.output)
                found.append(node)
        return found

    @functools.cached_property
    def computed_of_constants(self) -> frozenset[str]:
        """The values that nodes compute from constants alone."""
        return frozenset(name for node in self.nodes_of_constants for name in node.output)

    @functools.cached_property
    def kinds(self) -> Mapping[str, frozenset[int]]:
        """The element types of the values that are known before anything runs: several where a name stands more than once."""
        found: dict[str, set[int]] = {}
        for name, tensor in self.contents.named:
            found.setdefault(name, set()).add(tensor.data_type)
        return {name: frozenset(kinds) for name, kinds in found.items()}

    def shape(self, name: str) -> list[int | None] | None:
        """The shape that a value is declared with, or a tensor has, or what a DynamicQuantizeLinear reads; None where there are graphs in graphs, or functions."""
        found = self._shaped.get(name)
        if isinstance(found, TensorProto):
            return list(found.dims)
        if found is None or not found.type.tensor_type.HasField("shape"):
            return None
        return [d.dim_value if d.HasField("dim_value") else None for d in found.type.tensor_type.shape.dim]

    @functools.cached_property
    def _shaped(self) -> Mapping[str, ValueInfoProto | TensorProto]:
        """What tells shapes, by name."""
        if self.contents.holding or self.model.functions:
            return {}
        graph = self.model.graph
        declared = {value.name: value for value in (*graph.value_info, *graph.output, *graph.input)}
        told: dict[str, ValueInfoProto | TensorProto] = {**declared, **{t.name: t for t in graph.initializer}}
        for node in self.contents.of("DynamicQuantizeLinear"):  # quantizing tools declare nothing of it
            if node.input and node.output and node.input[0] in told:
                told.setdefault(node.output[0], told[node.input[0]])
        return told

    @functools.cached_property
    def may_be_empty(self) -> bool:
        """Whether an input is declared to have no elements, a tensor that is more than a list has none, or constants cut one to none."""
        if holds_empty_data(self.contents):
            return True
        if cut_to_nothing(self.contents, self.constants_of):
            return True
        dims = (dim for value in self.model.graph.input for dim in value.type.tensor_type.shape.dim)
        return any(dim.HasField("dim_value") and dim.dim_value == 0 for dim in dims)

    @functools.cached_property
    def may_hold_doubles(self) -> bool:
        """Whether some value may be of float64."""
        return self.may_hold(TensorProto.DOUBLE)

    def may_hold(self, kind: int) -> bool:
        """Whether some value may be of a type: none is where no input, no tensor and no attribute has it.

        What operators of other domains make is not known.
        """
        if kind not in self._held:
            self._held[kind] = self._may_hold(kind)
        return self._held[kind]

    def _may_hold(self, kind: int) -> bool:
        if self.model.functions or kind in self.contents.tensor_types:
            return True
        if any(_FORMS.get(form.rstrip("s")) == kind for form in self.contents.constant_forms):
            return True
        kinds = [v.type for v in self.model.graph.input]
        return any(not t.HasField("tensor_type") or t.tensor_type.elem_type in (0, kind) for t in kinds) or any(
            canonical(node.domain) or any(a.i == kind and a.name in _NAMING for a in node.attribute)
            for node in self.contents.nodes
        )

    @functools.cached_property
    def floats(self) -> set[str]:
        """Values that hold floating-point numbers, as far as is seen at a glance. None where there are local functions."""
        return set() if self.model.functions else float_names(self.model.graph)

    def are_floats(self, names: Iterable[str]) -> bool:
        """Whether all of these values hold floating-point numbers, as `floats` tells."""
        if self.contents.holding or self.model.functions:
            return self.floats.issuperset(names)
        return all(map(self._float_search, names))

    @functools.cached_property
    def _float_search(self) -> FloatSearch:
        return FloatSearch(self.model.graph)

    @functools.cached_property
    def shapes(self) -> frozenset[str]:
        """The results of Shape."""
        return frozenset(node.output[0] for node in self.contents.of("Shape"))


def _is_small(tensor: TensorProto) -> bool:
    return tensor.data_location != TensorProto.EXTERNAL and tensor.ByteSize() < SMALL_BYTES
