# SPDX-License-Identifier: Apache-2.0
"""Loops and Scans that OpenVINO's built-in provider (1.24.1) leaves to the CPU provider, and whose body it takes as a whole.

What a Loop's body reads and makes is then other memory than the loop's: results are what lies there. Of a Scan's body it reads other inputs
where some are unused. With a text for another state it does not take the body as a whole, and the result is right.
"""

from __future__ import annotations

from collections.abc import Iterable

from onnx import NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.single_node import captures
from onnx_multi_backend.engines.ort import providers
from onnx_multi_backend.engines.ort.openvino_ep.input_order import used_in
from onnx_multi_backend.engines.ort.openvino_ep.outer_reads import carries_text
from onnx_multi_backend.engines.ort.openvino_ep.texts import IsMeant, with_texts
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far

_MISCOUNTS = "the OpenVINO execution provider takes the body of a Scan, counts its inputs without those that nothing uses, and would read others"
_REASON = "the OpenVINO execution provider takes the body of a loop that it leaves, and the loop reads other memory"


#: What a model is refused with where the provider takes a loop's body, and then the loop around it too.
TAKEN_INSIDE = "com.intel.ai.OpenVINO-EP-subgraph"
#: And where a body makes its next condition of constants, and reads neither the one before nor the step.
_LOST = "node not found in graph cache"


def is_of_a_body(words: str) -> bool:
    """Whether a model is refused for what the provider makes of the body of a loop."""
    return TAKEN_INSIDE in words or _LOST in words


def bodies_apart(payload: Payload, placement: Iterable[NodePlacement]) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload as `bodies_left` has it, where a Loop runs on the CPU provider."""
    left = any(node.op_type == "Loop" and node.provider == providers.CPU for node in placement)
    return bodies_left(payload) if left else (payload, ())


def bodies_left(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with a text for another state of each Loop, where one carries none."""
    return _left(payload, "Loop", _carries_no_text, _REASON)


def scans_left(payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
    """The payload with a text for another state of each Scan whose body has an unused input before a used one."""
    return _left(payload, "Scan", _is_miscounted, _MISCOUNTS)


def _left(payload: Payload, operator: str, is_meant: IsMeant, reason: str) -> tuple[Payload, tuple[Adaptation, ...]]:
    model = payload.adapted.proto
    if not any(map(is_meant, payload.adapted.facts.contents.of(operator))) or expands_too_far(model):
        return payload, ()
    return with_texts(payload, inlined(model), is_meant, operator, reason)


def _is_miscounted(node: NodeProto) -> bool:
    """Whether a Scan, of opset 9 or later, has such a body that carries no text."""
    body = next((a.g for a in node.attribute if a.name == "body"), None)
    if node.op_type != "Scan" or canonical(node.domain) or body is None or len(node.input) != len(body.input):
        return False
    read = used_in(body)
    unused = [value.name not in read for value in body.input]
    unused += [False] if captures(node) else []  # what is read from outside comes last
    return sorted(unused) != unused and not carries_text(body)


def _carries_no_text(node: NodeProto) -> bool:
    if node.op_type != "Loop" or canonical(node.domain):
        return False
    body = next((a.g for a in node.attribute if a.name == "body"), None)
    return body is not None and not carries_text(body)
