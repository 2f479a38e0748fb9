# SPDX-License-Identifier: Apache-2.0
"""Explaining a refusal: which nodes an engine does not take, and why. Runs only once an engine has said no."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import onnx
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper

from onnx_multi_backend import option_words
from onnx_multi_backend.adapt import Limits, adapt
from onnx_multi_backend.adapt.patience import Patience
from onnx_multi_backend.adapt.single_node import Scope, infer, opset_versions, reads, scope_of, single_node_model
from onnx_multi_backend.engines import deadly
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.errors import UnsupportedModelError
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import (
    all_nodes,
    canonical,
    nodes_in,
    one_of_each_first,
    operator_name,
    subgraphs,
)
from onnx_multi_backend.models.plausible import expanded
from onnx_multi_backend.models.tensors import type_from_string

#: Compiles a model of one node; returns the engine's complaint, or None.
Accepts = Callable[[ModelProto], "str | None"]

_OPERATION = re.compile(r"Operation name: (\S+)")
_MOST_PROBES = 64

#: Where the operators of a domain are that starts like one of these: in onnx, ONNX Runtime or PyTorch's exporter.
_KNOWN_DOMAINS = (
    "ai.onnx.ml",
    "ai.onnx.preview",
    "ai.onnx.training",
    "com.microsoft",
    "com.ms.",
    "org.pytorch",
    "pkg.",
    "omb.",
)
#: Who has the library of a domain.
_WHERE = {
    "ai.onnx.contrib": ", whose path onnxruntime_extensions.get_library_path() returns (pip install onnxruntime-extensions)"
}
_MOST_REASONS = 20
#: A call of a local function that comes to more nodes is not tried by itself: compiling it may take as long as the model.
_MOST_CALLED = 256
_ANOTHER_PRESET = "Choose a preset that has these operators; `onnx-multi-backend inspect` compares them."
#: Of the nodes that are refused for what they divide by, not for want of a kernel.
_BY_ZERO = "it divides an integer by a constant 0"
_DIVIDED = dict.fromkeys(("Div", "Mod"), (deadly.divisor_of_zero,))
_ANYTHING = helper.make_tensor_type_proto(TensorProto.FLOAT, None)


def refusal(payload: Payload, complaint: str, accepts: Accepts, *, limits: Limits, who: str) -> UnsupportedModelError:
    """The error for a model that an engine refused.

    Parameters
    ----------
    complaint : str
        The engine's own words.
    accepts : callable
        Tries one node on the engine.
    limits : Limits
        Each node is tried after the adaptations that it allows by itself, so that one operator which cannot be brought
        down does not make the others look guilty.
    who : str
        The preset, for the message.
    """
    model = payload.adapted.proto
    found = _refused_nodes(model, accepts, limits, complaint, payload.patience.for_explaining()) or list(
        _named_nodes(model, complaint)
    )
    if not found:
        return as_told(payload, complaint, who=who)
    lacking = dict.fromkeys(operator_name(node) for node, words in found if words != _BY_ZERO)
    if not lacking:
        said = [(operator_name(node), _called(node)) for node, _ in found]
        return _error(payload, said, "the model divides an integer by a constant 0: ", "Correct that constant.", who)
    said = [(operator_name(node), f"{_called(node)}: {words}") for node, words in found]
    return _error(payload, said, f"it lacks {', '.join(lacking)}. ", _ANOTHER_PRESET, who)


def as_told(payload: Payload, complaint: str, *, who: str) -> UnsupportedModelError:
    """The error for a model whose nodes are not to be tried one by one: the engine's own words."""
    return _error(payload, [("", complaint)], "", _ANOTHER_PRESET, who)


def too_large(payload: Payload, complaint: str, *, who: str) -> UnsupportedModelError:
    """The error for a model of which a tensor is larger than the engine's memory: the engine's own words."""
    return _error(payload, [("", complaint)], "a tensor is too large. ", "Correct its sizes.", who)


def computed_wrongly(payload: Payload, found: Iterable[tuple[NodeProto, str]], *, who: str) -> UnsupportedModelError:
    """The error for a model that an engine accepts and computes wrongly.

    Parameters
    ----------
    found : iterable of (onnx.NodeProto, str)
        The nodes, and what goes wrong with each.
    who : str
        The preset, for the message.
    """
    said = [(operator_name(node), f"{_called(node)}: {words}") for node, words in found]
    wrong = ", ".join(dict.fromkeys(operator for operator, _ in said))
    cure = "Choose another preset; `onnx-multi-backend inspect` compares them."
    return _error(payload, said, f"it does not compute {wrong} correctly. ", cure, who)


def ends_the_process(payload: Payload, found: Iterable[tuple[NodeProto, str]], *, who: str) -> UnsupportedModelError:
    """The error for a model that an engine would die of.

    Parameters
    ----------
    found : iterable of (onnx.NodeProto, str)
        The nodes, and what of each the engine would die of.
    who : str
        The preset, for the message.
    """
    said = [(operator_name(node), f"{_called(node)} would end the engine's process: {words}") for node, words in found]
    cure = "Correct the model, or choose another preset; `onnx-multi-backend inspect` compares them."
    return _error(payload, said, "", cure, who)


def _called(node: NodeProto) -> str:
    operator = operator_name(node)
    return f"{operator} {node.name!r}" if node.name else f"{operator} (output {next(iter(node.output), '')!r})"


def _error(payload: Payload, said: Sequence[tuple[str, str]], head: str, cure: str, who: str) -> UnsupportedModelError:
    """The error that gives reasons, each with its operator; what stands in front of them, and what to do."""
    reasons = [reason for _, reason in said]
    if domain := _custom_domain(payload.loaded.proto):
        cure = (
            f"Operators of {domain} come with a library of their own: on a preset on ONNX Runtime name it with "
            f"{option_words.given('session_options', {'custom_ops_library': 'PATH'})}{_WHERE.get(domain, '')}."
        )
    return UnsupportedModelError(
        f"{who} cannot run {payload.loaded.label}: {head}{'; '.join(reasons[:5]).rstrip('.')}. {cure}",
        operators=list(dict.fromkeys(operator for operator, _ in said if operator)),
        reasons=reasons[:_MOST_REASONS],
    )


def _custom_domain(model: ModelProto) -> str | None:
    """The first domain of operators that neither onnx nor ONNX Runtime has, and no local function of the model."""
    local = {canonical(function.domain) for function in model.functions}
    domains = (canonical(node.domain) for node in all_nodes(model))
    return next((d for d in domains if d not in local and not d.startswith(_KNOWN_DOMAINS) and d), None)


def _refused_nodes(
    model: ModelProto, accepts: Accepts, limits: Limits, complaint: str, patience: Patience
) -> list[tuple[NodeProto, str]]:
    """The nodes that are refused by themselves, as far as patience goes; those that the complaint names are tried first."""
    answers: dict[bytes, str | None] = {}
    found: dict[int, tuple[NodeProto, str]] = {}
    for place, node, single in _single_node_models(model, complaint):
        if answers and patience.over:
            break
        if single.functions and expanded(single) > _MOST_CALLED:
            continue
        key = single.SerializeToString(deterministic=True)
        if key not in answers:
            if len(answers) >= _MOST_PROBES:
                break
            patience.look()
            words = accepts(adapt(single, limits).proto)
            answers[key] = _BY_ZERO if words is not None and deadly.find(Contents(single), _DIVIDED) else words
        words = answers[key]
        if words is not None:
            found[place] = node, words
    found.update(_as_unknown(model, found, accepts))
    return [found[place] for place in sorted(found)]


def _as_unknown(
    model: ModelProto, found: Mapping[int, tuple[NodeProto, str]], accepts: Accepts
) -> Iterator[tuple[int, tuple[NodeProto, str]]]:
    """The nodes behind an operator that the engine does not know, which it knows as little.

    Their types are not known, so they are tried with any: that counts where the engine says of an operator that onnx does not
    know, word for word, what it said of the first.
    """
    said = {_without_name(words, node) for node, words in found.values() if not _has_schema(node, model)}
    answers: dict[tuple[str, str], str | None] = {}
    inner = [n for node in model.graph.node for graph in subgraphs(node) for n in nodes_in(graph.node)]
    for place, node in enumerate([*model.graph.node, *inner]) if said else ():
        operator = node.domain, node.op_type
        if place in found or _has_schema(node, model) or (operator not in answers and len(answers) >= _MOST_PROBES):
            continue
        if operator not in answers:
            anything = Scope(dict.fromkeys(reads(node), _ANYTHING), {})
            single = single_node_model(node, anything, model.opset_import, model.ir_version)
            answers[operator] = None if single is None else accepts(single)
        words = answers[operator]
        if words is not None and _without_name(words, node) in said:
            yield place, (node, words)


def _without_name(words: str, node: NodeProto) -> str:
    """The engine's words without the names of the operator and its domain."""
    for name in filter(None, (node.op_type, node.domain)):
        words = re.sub(rf"\b{re.escape(name)}\b", "", words)
    return words


def _has_schema(node: NodeProto, model: ModelProto) -> bool:
    """Whether onnx or the model itself says what a node is."""
    if any((f.domain, f.name) == (node.domain, node.op_type) for f in model.functions):
        return True
    return onnx.defs.has(node.op_type, node.domain)


def _named_nodes(model: ModelProto, complaint: str) -> Iterator[tuple[NodeProto, str]]:
    """Nodes, each taken by itself, that OpenVINO's complaint is about: it names a node, or a value that nodes read."""
    found = _OPERATION.search(complaint)
    if found is not None:
        for node in model.graph.node:
            if found[1] in (node.name, *node.input):
                yield node, complaint


def _single_node_models(model: ModelProto, complaint: str) -> Iterator[tuple[int, NodeProto, ModelProto]]:
    """Each node's place, the node, and a model of it alone: one node of each operator first, the operators that are named before the others."""
    scope = scope_of(infer(model))
    versions = opset_versions(model)
    for node in model.graph.node:
        for name, type_ in _types_by_schema(node, versions).items():
            scope.types.setdefault(name, type_)
    order = one_of_each_first([node.op_type for node in model.graph.node])
    for place in sorted(order, key=lambda place: model.graph.node[place].op_type not in complaint):
        node = model.graph.node[place]
        single = single_node_model(node, scope, model.opset_import, model.ir_version)
        if single is not None:
            single.functions.extend(model.functions)
            yield place, node, single


def _types_by_schema(node: NodeProto, versions: Mapping[str, int]) -> dict[str, TypeProto]:
    """The types of outputs that can only be tensors of one type: onnx infers nothing for some operators of ai.onnx.ml."""
    domain = canonical(node.domain)
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return {}
    told: dict[str, TypeProto] = {}
    for formal, name in zip(schema.outputs, node.output, strict=False):
        types = list(formal.types)
        found = type_from_string(types[0], ()) if name and len(types) == 1 else None
        if found is not None:
            found.tensor_type.ClearField("shape")
            told[name] = found
    return told
