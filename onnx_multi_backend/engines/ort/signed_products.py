# SPDX-License-Identifier: Apache-2.0
"""QLinearConv and QLinearMatMul of signed inputs and weights, whose sums saturate on some processors: see `byte_products`.

ONNX Runtime has no kernels of them for signed inputs and unsigned weights. Written with Q/DQ nodes, they are computed in floating point where
the weights become unsigned.
"""

from __future__ import annotations

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines import byte_products
from onnx_multi_backend.engines.unsigned_weights import SATURATION

OPERATORS = ("QLinearConv", "QLinearMatMul")


def may_saturate(node: NodeProto, facts: Facts) -> bool:
    """Whether `signed_products` may know something of a node."""
    zero = facts.certain.get(node.input[2])  # of the input's type
    return (zero is None or zero.data_type == TensorProto.INT8) and not byte_products.are_exact()


def signed_products(site: Site) -> Defect | None:
    """Source: measured, with weights that are known before anything runs."""
    signed = all(site.elem_type(site.input(place)) == TensorProto.INT8 for place in (0, 3))
    if not signed or not site.is_known(site.input(3)) or byte_products.are_exact():
        return None
    weights = site.initializer(site.input(3))
    if weights is not None and not byte_products.saturating([weights]):
        return None
    return Defect(SATURATION, wrong=True)
