# SPDX-License-Identifier: Apache-2.0
"""A convolution of CUDA that failed leaves its sizes behind: the session is built anew before its next run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb
from onnx_multi_backend.engines.ort.cuda.convolutions import spoils
from onnx_multi_backend.errors import RunError

TEXT = "ONNX Runtime failed while it ran the model: Non-zero status code returned while running {} node. Name:'Conv_3'"
#: The CPU provider's convolution refuses these sizes too.
CONVOLUTION = onnx.parser.parse_model(
    """<ir_version: 8, opset_import: ["": 13]> g (float[n, 1, l] x) => (float[n, 1, m] y) <float[1, 1, 3] w = {1, 2, 3}> {
    y = Conv <dilations = [3], strides = [2]> (x, w) }"""
)
RIGHT = [[[24.0, 36.0]]]


def fed(length: int) -> np.ndarray[Any, Any]:
    return np.arange(length, dtype=np.float32).reshape(1, 1, -1)


@pytest.mark.parametrize("operator", ["Conv", "ConvTranspose", "FusedConv", "NhwcFusedConv"])
def test_an_error_of_each_convolution_spoils_the_session(operator: str) -> None:
    assert spoils(RuntimeError(TEXT.format(operator)))


def test_an_error_of_another_operator_does_not() -> None:
    assert not spoils(RuntimeError(TEXT.format("Gather")))


@pytest.fixture
def as_on_cuda(ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> omb.PreparedModel:
    """On the CPU provider, and treated as one on CUDA."""
    _as_on_cuda(monkeypatch)
    return ort_cpu.prepare(CONVOLUTION)


def _as_on_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    session_module = pytest.importorskip("onnx_multi_backend.engines.ort.session")
    plain = session_module.record
    monkeypatch.setattr(session_module, "record", lambda name: replace(plain(name), spoiled_by=spoils))


def test_the_session_is_built_anew(as_on_cuda: omb.PreparedModel) -> None:
    first = as_on_cuda._session.native
    np.testing.assert_allclose(as_on_cuda.run(fed(9))[0], RIGHT)
    assert as_on_cuda._session.native is first
    for _ in range(2):
        before = as_on_cuda._session.native
        with pytest.raises(RunError, match="running Conv node"):
            as_on_cuda.run(fed(4))
        np.testing.assert_allclose(as_on_cuda.run(fed(9))[0], RIGHT)
        assert as_on_cuda._session.native is not before


def test_what_was_bound_before_is_bound_anew(as_on_cuda: omb.PreparedModel) -> None:
    bound = as_on_cuda.bind(fed(9))
    np.testing.assert_allclose(bound.run()[0], RIGHT)
    with pytest.raises(RunError, match="running Conv node"):
        as_on_cuda.run(fed(4))
    bound.inputs["x"][:] *= 2
    np.testing.assert_allclose(bound.run()[0], 2 * np.array(RIGHT))
    np.testing.assert_allclose(as_on_cuda.bind(fed(9)).run()[0], RIGHT)


def test_a_session_that_cannot_be_built_anew_says_so(as_on_cuda: omb.PreparedModel) -> None:
    def failing() -> Any:
        raise omb.UnsupportedModelError("no memory")

    session: Any = as_on_cuda._session
    session._make = failing
    with pytest.raises(RunError, match="running Conv node"):
        as_on_cuda.run(fed(4))
    for _ in range(2):
        with pytest.raises(RunError, match=r"cannot be made anew: no memory Prepare the model again"):
            as_on_cuda.run(fed(9))


def test_another_model_is_not_read_in_its_place(
    ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _as_on_cuda(monkeypatch)
    path = tmp_path / "model.onnx"
    onnx.save(CONVOLUTION, path)
    rep = ort_cpu.prepare(path)
    with pytest.raises(RunError, match="running Conv node"):
        rep.run(fed(4))
    other = onnx.ModelProto.FromString(CONVOLUTION.SerializeToString())
    other.doc_string = "another"
    onnx.save(other, path)
    with pytest.raises(RunError, match="was changed or removed"):
        rep.run(fed(9))


def test_sessions_of_other_providers_stay(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(CONVOLUTION)
    native = rep._session.native
    with pytest.raises(RunError, match="Conv"):
        rep.run(fed(4))
    np.testing.assert_allclose(rep.run(fed(9))[0], RIGHT)
    assert rep._session.native is native


def test_sizes_that_were_refused_may_be_given_again(cuda: type[omb.Preset]) -> None:
    rep = cuda.prepare(CONVOLUTION)
    for length in (5, 4, 4, 5, 9, 4, 4, 9):
        if length == 9:
            np.testing.assert_allclose(rep.run(fed(length))[0], RIGHT)
        else:
            with pytest.raises(RunError, match="running Conv node"):
                rep.run(fed(length))
