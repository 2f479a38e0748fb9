# SPDX-License-Identifier: Apache-2.0
"""An input that a convolution of CUDA refuses, given again."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.engines.ort.cuda.failed_sizes import FailedSizes
from onnx_multi_backend.errors import RunError

REFUSED = RunError("ONNX Runtime failed while it ran the model: Non-zero status code returned while running Conv node.")
CONVOLUTION = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["": 13]> g (float[n, 1, l] x) => (float[n, 1, m] y) <float[1, 1, 3] w = {1, 2, 3}> {
    y = Conv <dilations = [3], strides = [2]> (x, w) }"""
)


def arrays(*lengths: int) -> list[dict[str, np.ndarray]]:
    return [{"x": np.arange(length, dtype=np.float32).reshape(1, 1, -1)} for length in lengths]


def test_the_same_sizes_are_refused_until_others_went_well() -> None:
    failed = FailedSizes()
    small, large = arrays(4, 9)
    failed.check(small)
    assert failed.note(small, REFUSED) is REFUSED
    failed.check(large)
    with pytest.raises(RunError, match="running Conv node"):
        failed.check({"x": small["x"] + 1})
    failed.forget()
    failed.check(small)


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "FusedConv", "NhwcFusedConv"])
def test_each_convolution_counts(operator: str) -> None:
    failed = FailedSizes()
    failed.note(arrays(4)[0], RunError(f"returned while running {operator} node. Name:'y'"))
    with pytest.raises(RunError):
        failed.check(arrays(4)[0])


def test_other_operators_may_run_again() -> None:
    failed = FailedSizes()
    failed.note(arrays(4)[0], RunError("returned while running Gather node. Name:'Conv_3'"))
    failed.check(arrays(4)[0])


@pytest.mark.parametrize("how", ["run", "bind"])
def test_an_input_that_is_too_short_may_be_given_again(how: str, cuda: type[omb.Preset]) -> None:
    rep = cuda.prepare(CONVOLUTION)
    short, shorter, right = arrays(5, 4, 9)

    def run(feeds: dict[str, np.ndarray]) -> np.ndarray:
        return np.asarray((rep.run(feeds) if how == "run" else rep.bind(feeds).run())["y"])

    for feeds in (short, shorter, shorter, short, short):
        with pytest.raises(RunError, match="running Conv node"):
            run(feeds)
    for feeds in (right, shorter, right):
        if feeds is shorter:
            for _ in range(2):
                with pytest.raises(RunError, match="running Conv node"):
                    run(feeds)
        else:
            np.testing.assert_allclose(run(feeds), [[[24.0, 36.0]]])
