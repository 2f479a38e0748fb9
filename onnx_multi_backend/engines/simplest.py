# SPDX-License-Identifier: Apache-2.0
"""A model that every engine compiles unless its options are wrong."""

from __future__ import annotations

from onnx import TensorProto, helper

from onnx_multi_backend.adapt.engine import Engine, answer

SIMPLEST = helper.make_model(
    helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "simplest",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    ),
    opset_imports=[helper.make_opsetid("", 13)],
    ir_version=7,
)


def why_none(engine: Engine) -> str | None:
    """Why an engine compiles nothing at all with its options; None: it compiles a Relu."""
    return answer(engine, SIMPLEST)
