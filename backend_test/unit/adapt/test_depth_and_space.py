# SPDX-License-Identifier: Apache-2.0
"""DepthToSpace and SpaceToDepth of types that ONNX Runtime has no kernel for."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from backend_test.unit.adapt.forced import OPENVINO, ORT_CPU, rewritten

TYPES = {"int64": np.int64, "int32": np.int32, "uint16": np.uint16, "uint64": np.uint64, "bool": np.bool_}
OPERATORS = [
    'DepthToSpace <blocksize = 2, mode = "DCR">',
    'DepthToSpace <blocksize = 2, mode = "CRD">',
    "SpaceToDepth <blocksize = 2>",
]
SIZES = ["3, 8, 4, 6", "n, 8, h, 6", "n, c, h, w"]


def model(operator: str, kind: str, sizes: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g ({kind}[{sizes}] x) => ({kind}[a, b, c, d] y) {{ y = {operator} (x) }}"""
    )


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("kind", TYPES)
def test_types_without_a_kernel(preset: type[omb.Preset], kind: str, operator: str, sizes: str) -> None:
    made = model(operator, kind, sizes)
    x = (np.arange(3 * 8 * 4 * 6).reshape(3, 8, 4, 6) % 251).astype(TYPES[kind])
    if kind == "int64":
        x += 2**33 if preset.name == "OrtCpu" else 2**30
    prepared = preset.prepare(made, fallback="full")
    for batch in (x, x[::-1]):
        (y,) = prepared.run([batch])
        np.testing.assert_array_equal(y, ReferenceEvaluator(made).run(None, {"x": batch})[0])


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("operator", OPERATORS)
def test_the_rule(engine: type[omb.Preset], operator: str, sizes: str) -> None:
    made = model(operator, "float", sizes)
    new, changes = rewritten(made, made.graph.node[0].op_type, target=ORT_CPU if engine.name == "OrtCpu" else OPENVINO)
    assert [change.pass_name for change in changes] == ["depth_and_space"]
    x = np.arange(3 * 8 * 4 * 6, dtype=np.float32).reshape(3, 8, 4, 6)
    np.testing.assert_array_equal(engine.prepare(new).run([x])[0], ReferenceEvaluator(made).run(None, {"x": x})[0])
