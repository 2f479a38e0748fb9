# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO (2025.4, 2026.4) makes of arithmetic with a constant that has more axes than what it is computed with.

Behind what moves elements (Reshape, Squeeze, Gather and others) or scales them, a constant of one element is taken for a number, and the result lacks
its axes: (6, 4) for (1, 6, 4). So it is where a product or a dequantization takes a constant in, where a function is recognized (Swish, GELU,
HardSwish), where a product by -1 is subtracted, and where a power of -1 divides. The value is given these axes beforehand. An Expand that gives a value axes alone is left out behind a Reshape. Sizes that only move are
right behind the constant; exporters compute places of a padding mask so.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence

from onnx import NodeProto, TypeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.names import CAST
from onnx_multi_backend.adapt.single_node import infer, opset_versions
from onnx_multi_backend.adapt.sizes.size import Sizes
from onnx_multi_backend.adapt.sizes.told import FIRST, sizes_of
from onnx_multi_backend.adapt.unused_names import names_taken, unused
from onnx_multi_backend.adapt.walked import NodeView, Walked, inner_first, tensor_types, walked_of
from onnx_multi_backend.engines.across_nodes.apart import has_fixed_inputs, maker_before, with_axes, written
from onnx_multi_backend.engines.across_nodes.kernels import ARITHMETIC
from onnx_multi_backend.engines.across_nodes.named_axes import axes_named
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.plausible import MOST_AXES
from onnx_multi_backend.models.undeclared import without_declared

_COMPUTING = frozenset({"Add", "Div", "Expand", "Max", "Mean", "Min", "Mod", "Mul", "Pow", "Sub", "Sum"})
#: What moves elements of what it reads first, and changes none.
_MOVING = frozenset({"Cast", "Gather", "Identity", "Reshape", "Slice", "Squeeze", "Unsqueeze"})
#: What stands in the functions that are recognized.
_FUNCTIONS = frozenset({"Clip", "Erf", "Exp", "HardSigmoid", "Max", "Min", "Pow", "Sigmoid", "Softplus", "Tanh"})
_SIZES = frozenset({"Shape", "Size"})
_PASS, _CHANGE = "axes_given_before", "what it reads is given the axes of its constant"
_REASON = "OpenVINO would leave the axes out that its constant has more than the value before it"

#: How many axes the inputs of nodes lack, by their places, by the nodes' places.
_Lacking = dict[int, dict[int, int]]


def axes_given_before(contents: Contents) -> Rewritten | None:
    """A copy of the model in which the value has as many axes as the constant; None where there is no such arithmetic."""
    if not contents.has(_COMPUTING):
        return None
    walked = walked_of(contents)
    search = _Search(walked, sizes_of(contents), functions=contents.has(_FUNCTIONS) or _subtracts(contents))
    if not any(map(search.places, walked.views)):
        return None
    search.believes = False
    found = [search.places(nodes) for nodes in walked.views]
    if not any(found):
        return None
    opset = opset_versions(walked.flat).get("", 1)
    taken, changes = names_taken(walked.flat), list[Adaptation]()

    def write(node: NodeProto, lacking: dict[int, int], kept: dict[str, str]) -> Iterator[NodeProto]:
        changes.append(Adaptation(_PASS, f"{node.op_type} {node.name or node.output[0]!r}", _CHANGE, _REASON))
        for place, count in lacking.items():
            read, made = node.input[place], unused(f"{node.input[place]}{CAST}axes", taken)
            yield from with_axes(read, made, count, opset)
            node.input[place] = made
        yield node

    return written(walked.flat, found, write, changes)


def _subtracts(contents: Contents) -> bool:
    """Whether there may be a sum with a product by -1, of which a difference is made."""
    return contents.has({"Mul"}) and contents.has({"Add"})


class _Search:
    """Looks for such arithmetic, also on the inputs of a model where there may be functions.

    Attributes
    ----------
    believes : bool
        Whether what the model declares of other values than its own inputs is believed, where the nodes alone do not tell: a first look, which costs
        less.
    """

    def __init__(self, walked: Walked, sizes: Mapping[str, Sizes], *, functions: bool) -> None:
        self.believes = True
        self._functions = functions
        self._walked = walked
        self._with_axes: set[str] = set()
        self._ahead = walked.fixed if has_fixed_inputs(walked.flat) else walked.stored
        self._told = {name: len(known) for name, known in sizes.items()}

    def places(self, nodes: Sequence[NodeView]) -> _Lacking:
        """These nodes of a graph, with how many axes their inputs lack."""
        found = ((place, self._lacking(node)) for place, node in enumerate(nodes) if node.operator in _COMPUTING)
        return {place: lacking for place, lacking in found if lacking}

    def _lacking(self, node: NodeView) -> dict[int, int]:
        """How many axes the inputs of a node lack that are computed in a run, as far as is known."""
        if node.operator == "Expand":
            return self._lacking_before(node)
        constants = [name for name in node.input if name in self._walked.ahead]
        most = max((rank for name in constants if (rank := self._rank_of_constant(name)) is not None), default=0)
        if not most:
            return {}
        computed = {i: name for i, name in enumerate(node.input) if self._is_computed(name)}
        if node.input[0] in constants:
            computed = {i: name for i, name in computed.items() if not self._is_size(name)}
        ranks = {i: self._rank(name) for i, name in computed.items() if most > 1 or self._may_be_a_number(name)}
        return {i: most - rank for i, rank in ranks.items() if rank is not None and rank < most}

    def _lacking_before(self, node: NodeView) -> dict[int, int]:
        """How many axes the first input of an Expand lacks that gives it axes alone."""
        sizes = self._walked.array(node.input[1]) if len(node.input) > 1 else None
        if sizes is None or sizes.size == 0 or (sizes != 1).any() or not self._is_computed(node.input[0]):
            return {}
        rank = self._rank(node.input[0])
        return {0: sizes.size - rank} if rank is not None and rank < sizes.size else {}

    def _is_computed(self, name: str) -> bool:
        return (name in self._walked.makers or (self._functions and bool(name))) and name not in self._ahead

    def _is_size(self, name: str) -> bool:
        """Whether a value holds sizes of a shape that were moved at most."""
        seen: set[str] = set()
        while name not in seen and (maker := self._walked.makers.get(name)) is not None and not canonical(maker.domain):
            if maker.op_type in _SIZES:
                return True
            if maker.op_type not in _MOVING:
                return False
            seen.add(name)
            name = maker.input[0]
        return False

    def _rank_of_constant(self, name: str) -> int | None:
        rank = self._told.get(name)
        kind = self._walked.declared.get(name) if rank is None and name not in self._walked.several else None
        return len(kind.shape.dim) if kind is not None and kind.HasField("shape") else rank

    def _may_be_a_number(self, name: str) -> bool:
        """Whether a value may have no axes, as far as the nodes tell."""
        seen: set[str] = set()
        while not self._told.get(name) and name not in self._with_axes:
            maker = self._walked.makers.get(name)
            if maker is None or canonical(maker.domain) or name in seen or self._told.get(name) == 0:
                return True
            seen.add(name)
            if maker.op_type in ARITHMETIC or maker.op_type == "MatMul":
                least = 1 if maker.op_type in ARITHMETIC else 2  # of two vectors comes a number
                others = [read for read in maker.input if read not in self._told]
                known = (read for read in maker.input if self._told.get(read, 0) >= least)
                name = next(known, others[0] if others else name)
            elif maker.op_type in FIRST and maker.input:
                name = maker.input[0]
            elif self._has_axes(maker):
                break
            else:
                return True
        self._with_axes |= seen
        return False

    def _has_axes(self, node: NodeProto) -> bool:
        """Whether it is a Reshape to sizes that are put together, or a Squeeze of fewer of its axes."""
        makers, taken = self._walked.makers, 0
        if node.op_type == "Squeeze":
            taken = axes_named(node, self._walked.fixed) or MOST_AXES
            maker = maker_before(node.input[0], makers, FIRST)
        else:
            maker = node
        if maker is None or maker.op_type != "Reshape" or len(maker.input) < 2:
            return False
        sizes = makers.get(maker.input[1])
        return sizes is not None and sizes.op_type == "Concat" and len(sizes.input) > taken

    def _rank(self, name: str) -> int | None:
        rank = self._told.get(name)
        if rank is not None or name in self._walked.several:
            return rank
        found = (types.get(name) for types in self._sources(name))
        return next((len(kind.shape.dim) for kind in found if kind is not None and kind.HasField("shape")), None)

    def _sources(self, name: str) -> Iterator[Mapping[str, TypeProto.Tensor]]:
        """What is asked for the type of a value, one after the other: inference takes long."""
        if self.believes:
            yield self._walked.declared
            yield self._walked.types
        else:
            yield self._walked.types if name in self._undeclared else self._inferred
            yield self._walked.declared

    @functools.cached_property
    def _undeclared(self) -> Collection[str]:
        """What is computed of the model's inputs without a declared shape on the way: its types are inferred."""
        graph, *inner = self._walked.graphs
        declared = {value.name for value in graph.output}
        if inner or graph.value_info or any(not declared.isdisjoint(node.input) for node in graph.node):
            return ()
        return self._walked.makers.keys() - declared

    @functools.cached_property
    def _inferred(self) -> Mapping[str, TypeProto.Tensor]:
        return tensor_types(inner_first(infer(without_declared(self._walked.flat)).graph))
