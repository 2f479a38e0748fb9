# SPDX-License-Identifier: Apache-2.0
"""Optimizers that take matrices and factors into a product.

Of a float16 MatMul with a constant, and a Transpose that moves the first axis to one of the last two places, a fusion makes one node; building the
session then ends the process of 1.24 to 1.32 at the level ORT_ENABLE_ALL, which is the default. PyTorch writes this where a batch is not the first
axis. The same fusion takes a matrix that is turned before its product with a vector for one that is not (1.24 to 1.32).

Up to opset 20 a Transpose that moves nothing before or behind a Gemm is taken for one that turns a matrix (1.24 to 1.32).

Before 1.32 the factors of a BatchNormalization are multiplied into the columns of a product's constant matrix, whatever a Transpose or a Reshape
between them makes of these.
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.ort.optimizers.passed import LEFT_OUT, passed_on, source
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents

#: Makes one node of a product and the transposition before it.
_TURNING = "MatmulTransposeFusion"
_MOVING = frozenset({"Reshape", "Transpose"})
_PASSING = frozenset({*LEFT_OUT, *_MOVING})


def of_halves(contents: Contents) -> list[str]:
    half = TensorProto.FLOAT16
    if not any(map(_moves_first_axis, contents.of("Transpose"))):
        return []
    if any(tensor.data_type == half for tensor in contents.tensors) or any(
        attribute.name == "to" and attribute.i == half for node in contents.of("Cast") for attribute in node.attribute
    ):
        return [_TURNING]
    return []


def of_turned_matrices(contents: Contents) -> list[str]:
    """One leaves out that a matrix is turned before its product with a vector."""
    if not contents.has({"Transpose"}) or not contents.has({"MatMul"}):
        return []
    turned = {node.output[0] for node in contents.of("Transpose") if _turns(node)}
    passed = passed_on(contents)
    products = [node for node in contents.of("MatMul") if len(node.input) > 1]
    others = [node.input[1] for node in products if source(node.input[0], passed, turned) in turned]
    if not others:
        return []
    facts = Facts(contents.model, contents)

    def may_be_a_vector(name: str) -> bool:
        if (held := contents.constants.get(name)) is not None:
            return len(held.dims) == 1
        if (shape := facts.shape(name)) is not None:
            return len(shape) == 1
        from onnx_multi_backend.adapt.walked import walked_of

        return walked_of(contents).rank(name) in (None, 1)

    return [_TURNING] if any(map(may_be_a_vector, others)) else []


def of_double_products(contents: Contents) -> list[str]:
    """Before 1.32 what one makes of a transposed matrix and a product has no kernel for float64, and the model is refused."""
    if not contents.has({"Transpose"}) or not contents.has({"MatMul"}):
        return []
    doubles = Facts(contents.model, contents).may_hold_doubles
    return [_TURNING] if doubles and applies({"onnxruntime": "<1.32"}) else []


def of_idle_transposes(contents: Contents) -> list[str]:
    if not contents.has({"Gemm"}):
        return []
    orders = (list(a.ints) for node in contents.of("Transpose") for a in node.attribute if a.name == "perm")
    return ["GemmTransposeFusion"] if [0, 1] in orders else []


def of_normalized_products(contents: Contents) -> list[str]:
    """One takes the factors of a BatchNormalization into a product before it, over what moves elements between them."""
    if not contents.has({"BatchNormalization"}) or not contents.has({"MatMul"}) or not contents.has(_MOVING):
        return []
    passed = passed_on(contents, _PASSING)
    products = {node.output[0] for node in contents.of("MatMul")}

    def is_moved_product(name: str) -> bool:
        return name not in products and source(name, passed) in products

    found = any(is_moved_product(node.input[0]) for node in contents.of("BatchNormalization"))
    return ["MatMul_BatchNormalization_Fusion"] if found and applies({"onnxruntime": "<1.32"}) else []


def _moves_first_axis(node: NodeProto) -> bool:
    """Whether the first axis becomes the last or the one before it, and the others keep their order."""
    perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), [])
    return len(perm) > 2 and 0 in perm[-2:] and sorted(perm) == [0, *(axis for axis in perm if axis)]


def _turns(node: NodeProto) -> bool:
    """Whether a Transpose exchanges the last two axes."""
    perm = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
    return perm is None or [*range(len(perm) - 2), len(perm) - 1, len(perm) - 2] == perm
