# SPDX-License-Identifier: Apache-2.0
"""OpenVINO 2025.4 deals the scales of blocks out in turn: they are repeated over their blocks."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper

import onnx_multi_backend as omb

RNG = np.random.default_rng(1)
#: The shape, that of the scales, the axis and the size of a block; the last block may be short.
FORMS = [
    ((4, 6), (2, 6), 0, 2),
    ((4, 6), (4, 3), 1, 2),
    ((4, 6), (4, 2), -1, 3),
    ((4, 5), (4, 3), 1, 2),
    ((1, 4, 3, 2), (1, 2, 3, 2), 1, 2),
    ((2, 3, 4), (2, 2, 4), -2, 2),
]


def declared(array: np.ndarray) -> str:  # type: ignore[type-arg]
    kind = onnx.TensorProto.DataType.Name(onnx.helper.np_dtype_to_tensor_dtype(array.dtype)).lower()
    return f"{kind}[{', '.join(map(str, array.shape))}]"


def right(x: np.ndarray, scale: np.ndarray, zero: np.ndarray, axis: int, block: int) -> np.ndarray:  # type: ignore[type-arg]
    places = np.arange(x.shape[axis]) // block
    wide = [np.take(a.astype(np.float32), places, axis) for a in (scale, zero)]
    return np.asarray((x.astype(np.float32) - wide[1]) * wide[0])


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16])
@pytest.mark.parametrize("scales", [np.float32, np.float16])
@pytest.mark.parametrize(("shape", "of_scales", "axis", "block"), FORMS)
@pytest.mark.parametrize("known", [False, True])
def test_scales_of_blocks(
    preset: type[omb.Preset],
    kind: type,
    scales: type,
    shape: tuple[int, ...],
    of_scales: tuple[int, ...],
    axis: int,
    block: int,
    known: bool,
) -> None:
    x, zero = (RNG.integers(0, 100, sizes).astype(kind) for sizes in (shape, of_scales))
    scale = RNG.uniform(0.5, 2, of_scales).astype(scales)
    made = declared(np.empty(shape, scales))
    inputs = f"{declared(x)} x, {declared(scale)} s, {declared(zero)} z"
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g ({"" if known else inputs + ", "}{made} w) => ({made} y) {{
            d = DequantizeLinear <axis = {axis}, block_size = {block}> (x, s, z) y = Add (d, w) }}"""
    )
    feeds = {"w": np.ones(shape, scales)}
    given = {"x": x, "s": scale, "z": zero}
    if known:
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in given.items())
    else:
        feeds |= given
    (y,) = preset.prepare(model, fallback="full").run(feeds)
    expected = right(x, scale, zero, axis, block) + 1
    np.testing.assert_allclose(
        y, expected, rtol=2e-3 if scales is np.float16 else 1e-6, atol=1e-2 if scales is np.float16 else 0
    )


@pytest.mark.parametrize("kind", [ml_dtypes.int4, ml_dtypes.uint4])
def test_weights_of_four_bits(preset: type[omb.Preset], kind: type) -> None:
    w, zero = (RNG.integers(0, 7, sizes).astype(kind) for sizes in ((8, 16), (8, 4)))
    scale = RNG.uniform(0.1, 1, (8, 4)).astype(np.float32)
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (float[b, 16] x) => (float[b, 8] y) {
            d = DequantizeLinear <axis = 1, block_size = 4> (w, s, z) t = Transpose (d) y = MatMul (x, t) }"""
    )
    arrays = {"w": w, "s": scale, "z": zero}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    x = RNG.normal(size=(2, 16)).astype(np.float32)
    (y,) = preset.prepare(model, fallback="full").run([x])
    np.testing.assert_allclose(y, x @ right(w, scale, zero, 1, 4).T, rtol=1e-4, atol=1e-4)
