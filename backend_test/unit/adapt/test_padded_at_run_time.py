# SPDX-License-Identifier: Apache-2.0
"""Pad with a value that is known only at run time, on OpenVINO; between floats of 8 bits it does not choose."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

NODES = {"pads of a run": "Pad (x, p, v)", "named axes": "Pad (x, p, v, a)", "known pads": "Pad (x, k, v)"}


@pytest.mark.parametrize("form", NODES)
@pytest.mark.parametrize("kind", ["float8e4m3fn", "float8e5m2", "float16", "float", "int8", "int64", "bool"])
def test_the_value_is_put_in(openvino: type[omb.Preset], form: str, kind: str) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 11, opset_import: ["": 23]> g ({kind}[2, 2] x, int64[4] p, {kind} v, int64[2] a) => ({kind}[m, n] y)
        <int64[4] k = {{1, 0, 0, 1}}> {{ y = {NODES[form]} }}"""
    )
    dtype = onnx.helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    x = np.array([[-1, 2], [3, 0]]).astype(dtype)
    prepared = openvino.prepare(model)
    for value in (x[0, 1], x[0, 0]):
        found = prepared.run({"x": x, "p": np.array([1, 0, 0, 1]), "v": np.asarray(value), "a": np.array([0, 1])})[0]
        right = np.pad(x, ((1, 0), (0, 1)), constant_values=value)
        np.testing.assert_array_equal(found, right, strict=True)
