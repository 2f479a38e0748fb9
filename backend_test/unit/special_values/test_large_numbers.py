# SPDX-License-Identifier: Apache-2.0
"""Numbers whose squares or sums leave the type are told where OpenVINO makes something else of them than ONNX."""

from __future__ import annotations

import warnings
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper, parser

import onnx_multi_backend as omb


def normalized(kind: str = "float") -> ModelProto:
    return parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]> g ({kind}[N,4,2] x, {kind}[4] s, {kind}[4] b) => ({kind}[N,4,2] y) {{
            y = GroupNormalization<num_groups=2>(x, s, b)
        }}"""
    )


def numbers(largest: float, dtype: type = np.float32) -> list[np.ndarray]:
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(1, 4, 2)
    x[0, 3, 1] = largest
    return [x.astype(dtype), np.ones(4, dtype), np.zeros(4, dtype)]


@pytest.mark.parametrize("largest", [3e38, -3e38, 2e18])
def test_an_input_is_told(largest: float, openvino: type[omb.Preset]) -> None:
    rep = openvino.prepare(normalized())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rep.run(numbers(1e17))
    with pytest.warns(omb.PrecisionWarning, match="input 'x' holds large numbers.*GroupNormalization"):
        rep.run(numbers(largest))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rep.run(numbers(largest))


@pytest.mark.parametrize("largest", [3e38, -3e38])
def test_openvino_still_computes_something_else(largest: float, openvino: type[omb.Preset], ort_cpu: type[omb.Preset]) -> None:  # fmt: skip
    given = numbers(largest)
    with pytest.warns(omb.PrecisionWarning):
        found = openvino.prepare(normalized()).run(given)[0]
    wanted = ort_cpu.prepare(normalized()).run(given)[0]
    assert np.isnan(wanted).any() and not np.isnan(found).any()


@pytest.mark.parametrize(
    ("kind", "dtype", "largest"), [("float16", np.float16, -4e4), ("bfloat16", ml_dtypes.bfloat16, -2e38)]
)
def test_numbers_of_16_bits_are_looked_at(kind: str, dtype: type, largest: float, openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21]> g ({kind}[N] x) => ({kind}[N] y) {{ y = Gelu(x) }}'
    )
    rep = openvino.prepare(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rep.run([np.array([1, -2, 0], dtype)])
    with pytest.warns(omb.PrecisionWarning, match="holds large numbers.*Gelu"):
        rep.run([np.array([1, largest, 0], dtype)])


def test_nan_hides_no_large_number(openvino: type[omb.Preset]) -> None:
    given = numbers(3e38)
    given[0][0, 0, 0] = np.nan
    rep = openvino.prepare(normalized())
    with pytest.warns(omb.PrecisionWarning, match="large numbers"):
        rep.run(given)


def test_a_mask_that_is_added_is_not_told(openvino: type[omb.Preset]) -> None:
    """The lowest number masks scores in every attention; a normalization that comes later never sees it."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[2,4] x, float[2,4] mask) => (float[2,4] y) {
            m = Add(x, mask)
            p = Softmax(m)
            s = Constant<value = float[4] {1, 1, 1, 1}>()
            y = LayerNormalization(p, s)
        }"""
    )
    x, mask = np.ones((2, 4), np.float32), np.zeros((2, 4), np.float32)
    mask[:, 2:] = np.finfo(np.float32).min
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        openvino.prepare(model).run([x, mask])


def test_a_constant_is_told_when_the_model_is_prepared(openvino: type[omb.Preset]) -> None:
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[2,1,1] x) => (float[2,2,4] y) {
            r = Reshape(c, shape)
            n = MeanVarianceNormalization<axes=[2]>(r)
            y = Add(x, n)
        }"""
    )
    constant = np.float32([1, -3e38, 2, 3, 4, 5, 6, 7]).reshape(4, 2)
    model.graph.initializer.extend(
        [numpy_helper.from_array(constant, "c"), helper.make_tensor("shape", 7, [3], [1, 2, 4])]
    )
    with pytest.warns(omb.PrecisionWarning, match="constant 'c' holds large numbers"):
        openvino.prepare(model)


def test_a_session_out_of_the_cache_tells_too(openvino: type[omb.Preset], tmp_path: Path) -> None:
    for _ in range(2):
        rep = openvino.prepare(normalized(), cache_dir=tmp_path)
        with pytest.warns(omb.PrecisionWarning, match="large numbers"):
            rep.run(numbers(3e38))
