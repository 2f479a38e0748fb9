# SPDX-License-Identifier: Apache-2.0
"""The float model that is calibrated or quantized."""

from __future__ import annotations

from dataclasses import dataclass

import onnx
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.pipeline import untouched
from onnx_multi_backend.engines.ort import qdq, quantization
from onnx_multi_backend.engines.session import RefusedError
from onnx_multi_backend.errors import AlreadyQuantizedError, UnsupportedModelError
from onnx_multi_backend.models import checks
from onnx_multi_backend.models.given import ModelLike
from onnx_multi_backend.models.graph_walk import all_nodes, canonical
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.sessions.signature import Signature, signature

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16)
_QUANTIZED = ("QLinear", "QuantizeLinear", "DequantizeLinear", "QAttention", "QGemm", "MatMulNBits", "MatMulInteger")


@dataclass(frozen=True)
class FloatModel:
    """A model that is not quantized.

    Attributes
    ----------
    proto : onnx.ModelProto
        All its weights are in it.
    signature : Signature
    """

    proto: ModelProto
    signature: Signature

    @property
    def label(self) -> str:
        """How messages call the model."""
        return self.signature.label

    def activations(self) -> list[str]:
        """The tensors of floats that nodes of the main graph read or write, without constants."""
        inferred = onnx.shape_inference.infer_shapes(self.proto).graph
        kinds = {
            v.name: v.type.tensor_type.elem_type for v in (*inferred.input, *inferred.value_info, *inferred.output)
        }
        constants = {t.name for t in self.proto.graph.initializer}
        constants |= {n.output[0] for n in self.proto.graph.node if n.op_type == "Constant"}
        names = (name for node in self.proto.graph.node for name in (*node.input, *node.output))
        return [name for name in dict.fromkeys(names) if kinds.get(name) in _FLOATS and name not in constants]


def read_float(model: ModelLike) -> FloatModel:
    """Load a float model.

    Raises
    ------
    InvalidModelError
    AlreadyQuantizedError
        Some of its nodes compute on quantized values.
    """
    loaded = load(model)
    checks.check_versions(loaded)
    checks.check(loaded, full=True)
    for node in all_nodes(loaded.proto):
        if node.op_type.startswith(_QUANTIZED) or node.op_type in ("ConvInteger", "DynamicQuantizeLinear"):
            raise AlreadyQuantizedError(
                f"{loaded.label} is quantized already: {node.op_type} {node.name or node.output[0]!r}. Give the float model "
                "that it was made from."
            )
    return FloatModel(loaded.with_all_weights(), signature(loaded, untouched(loaded.proto)))


def for_qdq(model: FloatModel) -> FloatModel:
    """Simplify a model, raise its opset where Q/DQ nodes need a newer one, and name its nodes.

    Raises
    ------
    UnsupportedModelError
        ONNX's converter or ONNX Runtime does not take it.
    """
    proto = qdq.ready(model.proto, model.label)
    try:
        proto = quantization.simplified(proto)
    except RefusedError as error:
        raise UnsupportedModelError(
            f"{model.label} cannot be quantized: ONNX Runtime does not take it: {error.words}"
        ) from error
    used = {canonical(node.domain) for node in all_nodes(proto)} | {""}
    kept = [entry for entry in proto.opset_import if canonical(entry.domain) in used]
    del proto.opset_import[:]
    proto.opset_import.extend(kept)
    return FloatModel(qdq.ready(proto, model.label), model.signature)
