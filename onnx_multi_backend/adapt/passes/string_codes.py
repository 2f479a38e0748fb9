# SPDX-License-Identifier: Apache-2.0
"""Pass: strings are carried as integer codes where an engine does not carry them itself."""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, TypeProto

from onnx_multi_backend.adapt.intervals.hints import hint
from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.passes.codes import MOST_CODES, StringCodes
from onnx_multi_backend.adapt.passes.string_flow import has_string_constants, is_string, string_outputs, text_of
from onnx_multi_backend.adapt.work import Adaptation, Work
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical, subgraphs
from onnx_multi_backend.models.inlining import inlined
from onnx_multi_backend.models.plausible import expands_too_far
from onnx_multi_backend.models.tensors import innermost, is_whole

_STRING, _CODE = TensorProto.STRING, TensorProto.INT32
_REASON = "the engine does not copy strings safely"


def string_codes(work: Work) -> None:
    """Write an int32 code for every string, where the model's operators only move strings, compare them or look at their shapes.

    A model with any other operator on strings is left as it is. The session encodes and decodes what crosses the boundary.
    """
    if not work.limits.codes_strings or not _has_strings(work.contents):
        return
    if work.model.functions and expands_too_far(work.model):
        return
    flat = inlined(work.model)
    outputs = string_outputs(flat.graph)
    if outputs is None:
        return
    model = ModelProto()
    model.CopyFrom(flat)
    words = _Words()
    try:
        words.replace_constants(Contents(model))
    except ValueError:  # it is not UTF-8, or does not hold as many strings as its shape says
        return
    if len(words.codes) >= MOST_CODES:
        return
    inputs = [v for v in model.graph.input if is_string(v.type)]
    for value in inputs:
        value.doc_string = hint(Value(_CODE, 0, MOST_CODES - 1))
    _retype(model.graph)
    if work.model.functions:
        work.inline(model, "codes are written for its strings")
    else:
        work.replace(model)
    work.strings = StringCodes(tuple(words.codes), tuple(v.name for v in inputs), outputs)
    places = [f"input {v.name}" for v in inputs] + [f"output {model.graph.output[i].name}" for i in outputs]
    if words.constants:
        places.append(f"{words.constants} constant{'s' if words.constants > 1 else ''}")
    work.changes += [Adaptation("string_codes", place, "strings carried as int32 codes", _REASON) for place in places]


def _has_strings(contents: Contents) -> bool:
    graph = contents.model.graph
    return any(is_string(v.type) for v in (*graph.input, *graph.output)) or has_string_constants(contents)


class _Words:
    """The strings of a model.

    Attributes
    ----------
    codes : dict of str to int
    constants : int
        How many constants hold them.
    """

    def __init__(self) -> None:
        self.codes = {"": 0}
        self.constants = 0

    def replace_constants(self, contents: Contents) -> None:
        """Write codes for the strings of all constants.

        Raises
        ------
        ValueError
            A constant is damaged.
        """
        for tensor in contents.tensors:
            if tensor.data_type == _STRING:
                if not is_whole(tensor):
                    raise ValueError(tensor.name)
                tensor.raw_data = self._coded(tensor.string_data)
                tensor.ClearField("string_data")
                tensor.data_type = _CODE
        for node in contents.of("Constant"):
            text = None if canonical(node.domain) else text_of(node)
            if text is not None:
                dims = [] if text.name == "value_string" else [len(text.strings)]
                coded = self._coded(text.strings if dims else [text.s])
                text.CopyFrom(
                    AttributeProto(
                        name="value",
                        type=AttributeProto.TENSOR,
                        t=TensorProto(data_type=_CODE, dims=dims, raw_data=coded),
                    )
                )

    def _coded(self, strings: object) -> bytes:
        self.constants += 1
        codes = self.codes
        return np.array([codes.setdefault(s.decode(), len(codes)) for s in strings], "<i4").tobytes()  # type: ignore[attr-defined]


def _retype(graph: GraphProto) -> None:
    """Declare codes where strings are declared."""
    for value in (*graph.input, *graph.output, *graph.value_info):
        _retype_one(value.type)
    for node in graph.node:
        for attribute in node.attribute:
            if node.op_type == "SequenceEmpty" and attribute.name == "dtype" and attribute.i == _STRING:
                attribute.i = _CODE
            elif attribute.HasField("tp"):
                _retype_one(attribute.tp)
        for inner in subgraphs(node):
            _retype(inner)


def _retype_one(kind: TypeProto) -> None:
    if is_string(kind):
        innermost(kind).tensor_type.elem_type = _CODE
