# SPDX-License-Identifier: Apache-2.0
"""What is made ready for a quantizer gives the same numbers, also where ONNX's converter forgets where pixels lie."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytest.importorskip("onnxruntime")

from onnx_multi_backend.engines.ort import qdq

NODES = {
    "nearest": (10, 'Resize <mode = "nearest"> (x, s)', "1, 1, 2.5, 3"),
    "nearest, smaller": (10, 'Resize <mode = "nearest"> (x, s)', "1, 1, 0.6, 0.5"),
    "linear": (10, 'Resize <mode = "linear"> (x, s)', "1, 1, 0.6, 3"),
    "Upsample": (9, 'Upsample <mode = "nearest"> (x, s)', "1, 1, 2.5, 3"),
    "linear Upsample": (9, 'Upsample <mode = "linear"> (x, s)', "1, 1, 2, 3"),
    "Upsample of opset 7": (7, 'Upsample <mode = "linear", scales = [1.0, 1.0, 2.0, 1.5]> (x)', ""),
}


def model(opset: int, node: str, scales: str) -> onnx.ModelProto:
    beside = f"<float[4] s = {{{scales}}}>" if scales else ""
    head = f'<ir_version: 5, opset_import: ["": {opset}]> g (float[n, 2, h, w] x) => (float[a, b, c, d] y) '
    return onnx.parser.parse_model(f"{head}{beside} {{ y = {node} }}")


@pytest.mark.parametrize("name", NODES)
def test_the_same_numbers(name: str) -> None:
    made = model(*NODES[name])
    raised = qdq.ready(made, "it")
    assert raised.opset_import[0].version == qdq.OPSET
    x = np.random.default_rng(1).normal(size=(1, 2, 5, 4)).astype(np.float32)
    right, found = (omb.OrtCpuBackend.prepare(m).run(x)[0] for m in (made, raised))
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


def test_an_image_that_grows_and_shrinks_is_refused() -> None:
    with pytest.raises(omb.UnsupportedModelError, match="which pixels"):
        qdq.ready(model(10, 'Resize <mode = "nearest"> (x, s)', "1, 1, 0.6, 3"), "it")
