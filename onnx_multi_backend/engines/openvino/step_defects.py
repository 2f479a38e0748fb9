# SPDX-License-Identifier: Apache-2.0
"""Forms of operators with steps or branches (recurrent layers, Loop, Scan, If) that OpenVINO (2025.4, 2026.4) accepts and computes wrongly."""

from __future__ import annotations

from onnx import GraphProto, ValueInfoProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules.loop_of_no_steps import runs_never, runs_once
from onnx_multi_backend.adapt.rules.loop_rows import collects
from onnx_multi_backend.adapt.rules.loop_states import unread_states
from onnx_multi_backend.adapt.rules.recurrent_directions import has_other_activations
from onnx_multi_backend.adapt.rules.scan_slices import passes_slices_on
from onnx_multi_backend.adapt.rules.scan_steps import blind_results
from onnx_multi_backend.adapt.single_node import captures, infer, needed_in, reads
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.models.graph_walk import subgraphs

#: The activations of OpenVINO's own layers, which for RNN may be any.
_USUAL = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}


def lengths(site: Site) -> Defect | None:
    """Source: measured; what OpenVINO has no layer for (activations that it lacks, or named for two directions), it writes as a loop, which is right."""
    shape, usual = site.shape(site.input(0)), _USUAL.get(site.op_type)
    functions = [name.decode() for name in site.attribute("activations", [])]
    as_loop = usual and functions and (len(functions) > len(usual) or any(map(str.__ne__, functions, usual)))
    if site.attribute("clip", 0) or as_loop:
        return None
    if site.has_input(4) and (shape is None or None in shape):
        return Defect("sequence_lens is ignored where the shape is known only at run time", wrong=True)
    return None


def branches(site: Site) -> Defect | None:
    """Source: measured; what is known at load, and branches whose shapes are all fixed, are right. What no result needs does not count."""
    if site.constant(site.input(0)) is not None:
        return None
    needed = [name for graph in subgraphs(site.node) for name in needed_in(graph)]
    read = [v.name for v in site.model.graph.input if v.name in needed]
    shapes = [site.shape(name) for name in (*site.node.output, *read) if name]
    if any(shape is None or None in shape for shape in shapes):
        return Defect(
            "where shapes are known only at run time, a branch that changes from run to run is not followed", wrong=True
        )
    return None


def _results(graph: GraphProto) -> list[ValueInfoProto]:
    """The results of a branch with their types, which it need not declare."""
    told = {value.name: value for value in graph.value_info}
    return [value if value.HasField("type") else told.get(value.name, value) for value in graph.output]


def scalars(site: Site) -> Defect | None:
    """Source: measured."""
    for results in zip(*map(_results, subgraphs(infer(site.model).graph.node[0])), strict=False):
        kinds = [value.type.tensor_type for value in results]
        ranks = {len(kind.shape.dim) for kind in kinds if kind.HasField("shape")}
        if 0 in ranks and len(ranks) > 1:
            return Defect("a scalar that one branch makes, and the other with axes, gets an axis", wrong=True)
    return None


def recurrent(site: Site) -> Defect | None:
    if 0 in (site.shape(site.input(0)) or ()):
        return Defect("a layer without steps, batch or features ends the process", wrong=True)
    if site.attribute("layout", 0):
        return Defect("layout=1 is ignored", wrong=True)
    if has_other_activations(site):
        return Defect("the reverse direction gets the activations of the forward one", wrong=True)
    return lengths(site)


def lstm(site: Site) -> Defect | None:
    if site.has_input(7) and ((weights := site.constant(site.input(7))) is None or weights.any()):
        return Defect("the peepholes (input P) are ignored", wrong=True)
    if site.attribute("input_forget", 0):
        return Defect("input_forget=1 is ignored", wrong=True)
    return recurrent(site)


def inserted(site: Site) -> Defect | None:
    """Source: measured."""
    if site.has_input(2) and not site.is_known(site.input(2)):
        return Defect(
            "at a position known only at run time, the length is lost, and so is a position below 0", wrong=True
        )
    return None


def loop(site: Site) -> Defect | None:
    if runs_never(site):
        return Defect("a loop of no steps gives zeros, not the initial values", wrong=True)
    if not runs_once(site) and unread_states(site):
        return Defect("a state that the body does not read is not written where the loop makes no step", wrong=True)
    if GUARDED not in site.node.name and collects(site):
        return Defect("where a loop makes no step, the rows of the run before are given once more", wrong=True)
    return None


def captured(site: Site) -> Defect | None:
    """Source: measured with ONNX Runtime 1.24's OpenVINO provider; constants do no harm."""
    outer = [name for name in captures(site.node) if not site.is_known(name)]
    if site.opset < 9 or not outer:
        return None
    return Defect("a Scan whose body reads computed values from outside may end the process", wrong=True, deadly=True)


def scan(site: Site) -> Defect | None:
    body, scanned = site.attribute("body"), site.attribute("num_scan_inputs", 0)
    if site.opset < 9:
        return None
    states = len(body.input) - scanned
    passed_on = {(node.input[0], node.output[0]) for node in body.node if node.op_type == "Identity"}
    varying = {v.name for v in body.input[states:]}
    ends = list(zip(body.input[:states], body.output, strict=False))
    varying.update(a.name for a, b in ends if a.name != b.name and (a.name, b.name) not in passed_on)
    for node in body.node:
        if not varying.isdisjoint(reads(node)):
            varying.update(node.output)
    if all(v.name in varying for v in body.output[states:]):
        return None
    return Defect("a value that every step computes alike is returned once, not once for each step", wrong=True)


def uncounted(site: Site) -> Defect | None:
    """Source: measured; the inputs of a Scan that no result needs are dropped, and with the last of them the number of steps."""
    if blind_results(site):
        return Defect("where no result depends on what the body is given of each step, it makes one step", wrong=True)
    return None


def slices_passed_on(site: Site) -> Defect | None:
    """Source: measured with Dropout, Max, Min, Sum and a sequence of one tensor; of states, with Identity and arithmetic too.

    A state that is computed in the memory of what a step is given is overwritten by what the next step is given.
    """
    if passes_slices_on(site):
        return Defect("what a body passes on of each step has an axis too many, or is its state too early", wrong=True)
    return None
