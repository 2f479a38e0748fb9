# SPDX-License-Identifier: Apache-2.0
"""Arrays that an engine reads where they lie. Without a GPU the same way is gone with memory of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.running.feeds import FeedMaker

X = np.float32([[-1, 2, 3]])

device_array = pytest.importorskip("onnx_multi_backend.engines.ort.device_array")


@pytest.fixture
def rep(ort_cpu: type[omb.Preset]) -> omb.PreparedModel:
    """Relu, whose inputs are taken over as those on a GPU are."""
    made = ort_cpu.prepare(models.relu())

    def from_device(value: Any) -> Any:
        return device_array.DeviceArray.from_device(value) if isinstance(value, Elsewhere) else None

    made._feeds = FeedMaker(made._signature, from_device)
    return made


class Elsewhere:
    """Speaks DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_an_adopted_array_shares_its_memory(ort_cpu: type[omb.Preset]) -> None:
    x = X.copy()
    adopted = device_array.DeviceArray.from_device(Elsewhere(x))
    assert (adopted.shape, adopted.dtype, adopted.device) == ((1, 3), np.float32, "CPU")
    x[0, 0] = 9
    np.testing.assert_array_equal(np.from_dlpack(adopted), x)
    assert np.shares_memory(np.from_dlpack(adopted), x)
    np.testing.assert_array_equal(adopted.numpy(), x)
    assert not np.shares_memory(adopted.numpy(), x)
    with pytest.raises(BufferError, match="where it lies"):
        adopted.__dlpack__(copy=True)


def test_run_takes_adopted_arrays(rep: omb.PreparedModel) -> None:
    result = rep.run(Elsewhere(X))
    np.testing.assert_array_equal(result["y"], np.maximum(X, 0))
    np.testing.assert_array_equal(rep.run({"x": Elsewhere(X)}, log_severity_level=3)["y"], result["y"])


def test_a_bound_run_reads_an_adopted_array_where_it_lies(rep: omb.PreparedModel) -> None:
    x = X.copy()
    bound = rep.bind(Elsewhere(x))
    np.testing.assert_array_equal(bound.run()["y"], np.maximum(X, 0))
    x[...] = 5
    assert (bound.run()["y"] == 5).all()
    assert isinstance(bound.inputs["x"], device_array.DeviceArray)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones((1, 3)), "dtype float64 given, the model wants float32. Convert it on the device"),
        (np.ones((1, 4), np.float32), "dimension 1 is 4"),
        (np.ones((3,), np.float32), "has rank 1"),
        (np.ones((6, 2), np.float32)[::2], "cannot read this Elsewhere through DLPack"),
    ],
)
def test_adopted_arrays_are_checked(rep: omb.PreparedModel, array: np.ndarray, message: str) -> None:
    with pytest.raises(omb.InputError, match=message):
        rep.run(Elsewhere(array))


def test_types_that_are_made_on_the_host_are_refused(ort_cpu: type[omb.Preset]) -> None:
    kind = TensorProto.BFLOAT16
    made = ort_cpu.prepare(
        models.one_node("Identity", [models.tensor("x", (1, 3), kind)], [models.tensor("y", (1, 3), kind)])
    )
    made._feeds = FeedMaker(made._signature, device_array.DeviceArray.from_device)
    with pytest.raises(omb.InputError, match="takes this tensor\\(bfloat16\\) as float32.*adapt=False"):
        made.run(Elsewhere(X))


def test_where_a_value_lies() -> None:
    class OnGpu(Elsewhere):
        def __dlpack_device__(self) -> tuple[int, int]:
            return 2, 1

    assert device_array.lies_on_a_device(OnGpu(X))
    assert not any(map(device_array.lies_on_a_device, (Elsewhere(X), X, [X], 3)))


def test_arrays_on_a_gpu_stay_there(cuda: type[omb.Preset]) -> None:
    rep = cuda.prepare(models.relu())
    on_gpu = rep.run(X, output_device="CUDA:0")["y"]
    assert on_gpu.device == "CUDA:0"
    np.testing.assert_array_equal(on_gpu.numpy(), np.maximum(X, 0))
    again = rep.run(on_gpu)["y"]
    assert isinstance(again, np.ndarray)
    bound = rep.bind(on_gpu, output_device="CUDA:0")
    np.testing.assert_array_equal(bound.run()["y"].numpy(), again)
    assert bound.outputs["y"].device == "CUDA:0"


def test_booleans_are_read_where_they_lie(ort_cpu: type[omb.Preset]) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([[True, False]])
    adopted = device_array.DeviceArray.from_device(x)
    assert (adopted.dtype, adopted.shape) == (np.dtype(bool), (1, 2))
    x[0, 1] = True
    np.testing.assert_array_equal(adopted.numpy(), [[True, True]])


def test_a_binding_to_arrays_of_the_host_has_no_cuda_graph(
    ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU provider ignores the entry of the run options."""
    asked: list[Any] = []

    def recorded(options: Any) -> Any:
        asked.append(dict(options))
        return make_run_options(options)

    session_module = pytest.importorskip("onnx_multi_backend.engines.ort.session")
    make_run_options = session_module.make_run_options
    monkeypatch.setattr(session_module, "make_run_options", recorded)
    monkeypatch.setattr(session_module.cuda_graphs, "captures", lambda native: True)
    rep = ort_cpu.prepare(models.relu((None, 3)))
    np.testing.assert_array_equal(rep.run(X, log_severity_level=3)["y"], np.maximum(X, 0))
    np.testing.assert_array_equal(rep.bind(X).run()["y"], np.maximum(X, 0))
    assert asked and all(options["gpu_graph_id"] == "-1" for options in asked)
    session = rep._session
    there = session.run_to_device({"x": X}, None, "CPU")
    adopted = device_array.DeviceArray.from_device(Elsewhere(X.copy()))
    place = device_array.DeviceArray.from_device(Elsewhere(np.zeros_like(X)))
    for _ in range(2):
        session.bind({"x": adopted}, [place])()
    np.testing.assert_array_equal(place.numpy(), there[0])
    assert [options["gpu_graph_id"] for options in asked[-2:]] == [1, 2]


def on_gpu(values: np.ndarray) -> Any:
    """An array on the GPU, made by an Identity of its type."""
    kind = np.dtype(values.dtype)
    made = omb.OrtCudaBackend.prepare(
        models.one_node(
            "Identity",
            [models.tensor("x", values.shape, helper.np_dtype_to_tensor_dtype(kind))],
            [models.tensor("y", values.shape, helper.np_dtype_to_tensor_dtype(kind))],
        )
    )
    return made.run(values, output_device="CUDA:0")["y"]


def test_a_bound_run_writes_where_an_array_on_the_gpu_lies(cuda: type[omb.Preset]) -> None:
    torch = pytest.importorskip("torch")
    rep = cuda.prepare(models.relu())
    x, y = torch.from_numpy(X).cuda(), torch.zeros(1, 3).cuda()
    bound = rep.bind(x, [y])
    for factor in (1, -1):
        x.copy_(torch.from_numpy(factor * X))
        torch.cuda.synchronize()
        bound.run()
        np.testing.assert_array_equal(y.cpu().numpy(), np.maximum(factor * X, 0))


def test_booleans_on_a_gpu(cuda: type[omb.Preset]) -> None:
    torch = pytest.importorskip("torch")
    kind = TensorProto.BOOL
    rep = cuda.prepare(models.one_node("Not", [models.tensor("x", (1, 3), kind)], [models.tensor("y", (1, 3), kind)]))
    x = torch.tensor([[True, False, True]]).cuda()
    assert rep.run(x)["y"].tolist() == [[False, True, False]]


def test_each_binding_has_a_cuda_graph_of_its_own(cuda: type[omb.Preset]) -> None:
    rep = cuda.prepare(models.relu((1, 3)), provider_options={"enable_cuda_graph": 1})
    for factor in (1, -1, 2):  # a replay would return nothing
        np.testing.assert_array_equal(rep.run(factor * X)["y"], np.maximum(factor * X, 0))
    inputs = [on_gpu(np.zeros_like(X)) for _ in range(2)]
    bindings = [rep.bind(x, output_device="CUDA:0") for x in inputs]
    of_the_host = rep.bind(host := X.copy())
    for factor in (1, -1, 2, 3):
        for i, (x, bound) in enumerate(zip(inputs, bindings, strict=True)):
            values = factor * (i + 1) * X
            x.native.update_inplace(values)
            np.testing.assert_array_equal(bound.run()["y"].numpy(), np.maximum(values, 0))
        host[...] = 5 * factor * X
        np.testing.assert_array_equal(of_the_host.run()["y"], np.maximum(host, 0))
        np.testing.assert_array_equal(rep.run(factor * X)["y"], np.maximum(factor * X, 0))
