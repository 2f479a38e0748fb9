# SPDX-License-Identifier: Apache-2.0
"""Optimizers that end the process, or refuse a model, over constants, defaults and choices.

A fusion ends the process before 1.26, with a Where that reads a DequantizeLinear without a constant zero point.

Before 1.30 the process ends where an input of float16 has a default: the fusion that makes float32 of it frees it. So it does with a constant of
float16 that is cast to float32, where nothing is computed ahead.

Before 1.27 an Optional of what is known ahead is refused: computing it beforehand is not implemented.
"""

from __future__ import annotations

from onnx import TensorProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.ort.chosen_branches import FOLDING
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents

#: Makes float32 of constants of float16.
_WIDENING = "FuseFp16InitializerToFp32NodeTransformer"


def of_choices(contents: Contents) -> list[str]:
    both = contents.has({"Where"}) and contents.has({"DequantizeLinear"})
    return ["WhereDummyDq"] if both and applies({"onnxruntime": "<1.26"}) else []


def of_optionals(contents: Contents) -> list[str]:
    if not contents.has({"Optional"}) or not applies({"onnxruntime": "<1.27"}):
        return []
    facts = Facts(contents.model, contents)
    known = facts.known | facts.computed_of_constants
    return [FOLDING] if any(not known.isdisjoint(node.input) for node in contents.of("Optional")) else []


def of_defaults(contents: Contents) -> list[str]:
    graph = contents.model.graph
    halves = {tensor.name for tensor in graph.initializer if tensor.data_type == TensorProto.FLOAT16}
    given = not halves.isdisjoint(value.name for value in graph.input)
    return [_WIDENING] if given and applies({"onnxruntime": "<1.30"}) else []


def of_cast_constants(contents: Contents) -> list[str]:
    """Those that end the process over a constant that is cast, where nothing is computed ahead."""
    halves = any(tensor.data_type == TensorProto.FLOAT16 for tensor in contents.tensors)
    return [_WIDENING] if halves and contents.has({"Cast", "CastLike"}) and applies({"onnxruntime": "<1.30"}) else []
