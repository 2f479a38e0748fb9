# SPDX-License-Identifier: Apache-2.0
"""``isolate=True``: a model in a process of its own, which really dies here."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.models import INT64, STRING

if os.name != "posix":
    pytest.skip("signals and forks are POSIX's", allow_module_level=True)

INT32, BOOL = TensorProto.INT32, TensorProto.BOOL
SMALLEST = np.iinfo(np.int32).min


def quotient() -> onnx.ModelProto:
    """The smallest integer by -1 ends ONNX Runtime's process."""
    return models.one_node(
        "Div",
        [models.tensor("a", ("N",), INT32), models.tensor("b", ("N",), INT32)],
        [models.tensor("y", ("N",), INT32)],
    )


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


GOOD, DEADLY = [ints(7, 8), ints(2, -1)], [ints(SMALLEST, 8), ints(-1, 1)]


def endless() -> onnx.ModelProto:
    """Counts to n in a Loop, which takes for ever where n is large."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Add", ["a", "one"], ["b"])],
        "body",
        [models.tensor("i", (), INT64), models.tensor("c", (), BOOL), models.tensor("a", (), INT64)],
        [models.tensor("d", (), BOOL), models.tensor("b", (), INT64)],
    )
    constants = {"one": np.array(1), "zero": np.array(0), "yes": np.array(True)}
    node = models.node("Loop", ["n", "yes", "zero"], ["y"], body=body)
    return models.model(
        [node], [models.tensor("n", (), INT64)], [models.tensor("y", (), INT64)], initializers=constants
    )


def is_gone(pid: int | None) -> bool:
    assert pid is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.fixture(scope="module")
def isolated() -> Iterator[Any]:
    if not omb.availability()["OrtCpu"].usable:
        pytest.skip("ONNX Runtime is not installed")
    with omb.OrtCpuBackend.prepare(quotient(), isolate=True) as prepared:
        yield prepared


def test_a_dead_engine_is_a_typed_error_and_the_next_run_goes_on(isolated: Any) -> None:
    first = isolated.run(GOOD)  # which starts a process where there is none
    before = isolated.pid
    with pytest.raises(
        omb.EngineCrashedError, match=r"SIGFPE while it ran model 'tiny' on a int32\[2\], b int32\[2\]"
    ) as raised:
        isolated.run(DEADLY)
    assert raised.value.signal == signal.SIGFPE
    assert raised.value.exit_code == -signal.SIGFPE
    assert is_gone(before)
    assert first.y.tolist() == [3, -8]
    assert isolated.run(GOOD)[0].tolist() == [3, -8]
    assert isolated.pid != before
    assert not is_gone(isolated.pid)


def test_it_may_die_again_and_again(isolated: Any) -> None:
    for _ in range(3):
        with pytest.raises(omb.EngineCrashedError):
            isolated.run(DEADLY)
        assert isolated.run({"b": GOOD[1], "a": GOOD[0]})["y"].tolist() == [3, -8]


def test_a_prepare_that_dies_is_a_typed_error(ort_cpu: type[omb.Preset]) -> None:
    """ONNX Runtime computes constants when it builds a session."""
    folded = models.model(
        [models.node("Div", ["a", "b"], ["y"])],
        [],
        [models.tensor("y", None, INT32)],
        initializers={"a": DEADLY[0], "b": DEADLY[1]},
    )
    with pytest.raises(omb.EngineCrashedError, match="SIGFPE while it prepared") as raised:
        ort_cpu.prepare(folded, isolate=True, adapt=False)
    assert raised.value.signal == signal.SIGFPE


def test_all_presets_run_as_without(preset: type[omb.Preset]) -> None:
    plain, isolated = (preset.prepare(models.linear(), isolate=isolate) for isolate in (False, True))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for inputs in (x, [x], {"x": x}, x[:, ::-1], x.tolist() and np.asfortranarray(x)):
        np.testing.assert_array_equal(isolated.run(inputs)[0], plain.run(inputs)[0])
    assert isolated.get_inputs() == plain.get_inputs()
    assert isolated.get_outputs() == plain.get_outputs()
    assert isolated.placement() == plain.placement()
    assert isolated.adaptations == plain.adaptations
    assert (isolated.device, isolated.provider, isolated.preset) == (plain.device, plain.provider, plain.preset)
    assert isolated.run(x)._fields == ("y",)  # type: ignore[attr-defined]


def test_results_are_the_caller_s(isolated: Any) -> None:
    first = isolated.run(GOOD)[0]
    second = isolated.run([ints(1, 1), ints(1, 1)])[0]
    assert first.tolist() == [3, -8]
    assert first.flags.owndata
    second[...] = 9
    assert isolated.run(GOOD)[0].tolist() == [3, -8]


@pytest.mark.parametrize("size", [0, 1, 1000, 3_000_000, 5])
def test_shapes_of_any_size(isolated: Any, size: int) -> None:
    for count in (size, 2, size + 1):
        a = np.arange(count, dtype=np.int32)
        np.testing.assert_array_equal(isolated.run([a, np.full(count, 3, np.int32)])[0], a // 3)


def test_strings_sequences_optionals_and_narrow_types(ort_cpu: type[omb.Preset]) -> None:
    def both(model: onnx.ModelProto, inputs: Any) -> tuple[Any, Any]:
        with ort_cpu.prepare(model, isolate=True) as isolated:  # type: ignore[attr-defined]
            return isolated.run(inputs)[0], ort_cpu.prepare(model).run(inputs)[0]

    text = models.one_node("Identity", [models.tensor("x", ("N",), STRING)], [models.tensor("y", ("N",), STRING)])
    mine, theirs = both(text, np.array(["a", "ö", ""], object))
    assert mine.tolist() == theirs.tolist() == ["a", "ö", ""]

    split = models.model(
        [models.node("SplitToSequence", ["x"], ["y"], axis=0)],
        [models.tensor("x", (3,))],
        [helper.make_tensor_sequence_value_info("y", 1, None)],
    )
    mine, theirs = both(split, np.arange(3, dtype=np.float32))
    assert [v.tolist() for v in mine] == [v.tolist() for v in theirs]

    narrow = models.one_node(
        "Identity", [models.tensor("x", (2,), TensorProto.BFLOAT16)], [models.tensor("y", (2,), TensorProto.BFLOAT16)]
    )
    mine, theirs = both(narrow, np.array([1.5, -2], ml_dtypes.bfloat16))
    assert mine.dtype == theirs.dtype == ml_dtypes.bfloat16
    assert mine.tolist() == [1.5, -2]

    mixed = models.model(
        [models.node("Identity", ["s"], ["t"]), models.node("Neg", ["x"], ["y"])],
        [models.tensor("s", (1,), STRING), models.tensor("x", ())],
        [models.tensor("t", (1,), STRING), models.tensor("y", ())],
    )
    with ort_cpu.prepare(mixed, isolate=True) as isolated:  # type: ignore[attr-defined]
        for value in (2, 3):
            s, y = isolated.run([np.array([str(value)], object), np.float32(value)])
            assert (s.tolist(), float(y)) == ([str(value)], -value)


def test_a_model_without_inputs(engine: type[omb.Preset]) -> None:
    made = models.model([models.node("Constant", [], ["y"], value_floats=[1.0, 2.0])], [], [models.tensor("y", None)])
    assert engine.prepare(made, isolate=True).run([])[0].tolist() == [1, 2]


def test_errors_are_those_of_a_plain_model(ort_cpu: type[omb.Preset], isolated: Any, tmp_path: Path) -> None:
    with pytest.raises(omb.InputError, match="missing"):
        isolated.run({"a": GOOD[0]})
    with pytest.raises(omb.RunError, match="ONNX Runtime failed"):
        isolated.run([ints(1, 2, 3), ints(1, 2)])
    with pytest.raises(omb.DeviceError, match="output_device"):
        isolated.run(GOOD, output_device="CUDA:0")
    with pytest.raises(omb.OptionError, match="run option"):
        isolated.run(GOOD, nonsense=1)
    assert isolated.run(GOOD, log_severity_level=3)[0].tolist() == [3, -8]
    unknown = models.one_node("NoSuchOperator", [models.tensor("x")], [models.tensor("y")])
    with pytest.raises((omb.UnsupportedModelError, omb.InvalidModelError)):
        ort_cpu.prepare(unknown, isolate=True)
    with pytest.raises(omb.InvalidModelError, match="no file"):
        ort_cpu.prepare(tmp_path / "none.onnx", isolate=True)


def test_options_that_cannot_travel(ort_cpu: type[omb.Preset]) -> None:
    import onnxruntime

    with pytest.raises(omb.OptionTypeError, match="session_options cannot be handed"):
        omb.OrtBackend(quotient(), "CPUExecutionProvider", session_options=onnxruntime.SessionOptions(), isolate=True)
    with pytest.raises(omb.OptionTypeError, match="isolate is True or False"):
        ort_cpu.prepare(quotient(), isolate=1)
    with pytest.raises(omb.OptionError, match="time_limit needs isolate"):
        ort_cpu.prepare(quotient(), time_limit=1)
    with pytest.raises(omb.OptionError, match="time_limit"):
        ort_cpu.prepare(quotient(), isolate=True, time_limit=0)


def test_run_many_keeps_the_order_and_names_the_batch_that_died(isolated: Any) -> None:
    batches = [[ints(i, i), ints(1, 1)] for i in range(5)]
    assert [r[0].tolist() for r in isolated.run_many(batches)] == [[i, i] for i in range(5)]
    results = isolated.run_many([*batches, DEADLY, *batches])
    assert [next(results)[0].tolist() for _ in batches] == [[i, i] for i in range(5)]
    with pytest.raises(omb.EngineCrashedError):
        next(results)
    assert isolated.run(GOOD)[0].tolist() == [3, -8]


def test_bind(isolated: Any) -> None:
    y = np.zeros(2, np.int32)
    bound = isolated.bind([a.copy() for a in GOOD], [y])
    assert bound.run().y is y
    assert y.tolist() == [3, -8]
    bound.inputs["a"][...] = [9, 9]
    assert bound.run().y.tolist() == [4, -9]
    bound.inputs["a"][...], bound.inputs["b"][...] = DEADLY
    with pytest.raises(omb.EngineCrashedError):
        bound.run()
    bound.inputs["a"][...], bound.inputs["b"][...] = GOOD
    assert bound.run().y.tolist() == [3, -8]


def test_threads_wait_for_one_another(isolated: Any) -> None:
    found: list[bool] = []

    def work(i: int) -> None:
        for k in range(20):
            a = ints(*range(i + k))
            found.append(isolated.run([a, ints(*[1] * len(a))])[0].tolist() == a.tolist())

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80
    assert all(found)


def test_providers(isolated: Any, ort_cpu: type[omb.Preset]) -> None:
    plain = ort_cpu.prepare(quotient())
    assert isolated.get_providers() == plain.get_providers()
    assert isolated.get_provider_options() == plain.get_provider_options()
    isolated.set_providers(["CPUExecutionProvider"])
    with pytest.raises(omb.EngineCrashedError):
        isolated.run(DEADLY)
    assert isolated.run(GOOD)[0].tolist() == [3, -8]
    with pytest.raises(omb.OptionError):
        isolated.set_providers([])


def test_pickle(isolated: Any) -> None:
    again = pickle.loads(pickle.dumps(isolated))
    assert again.pid != isolated.pid
    assert again.run(GOOD)[0].tolist() == [3, -8]
    error = pickle.loads(pickle.dumps(omb.EngineCrashedError("died", signal=8, exit_code=-8)))
    assert (str(error), error.signal, error.exit_code) == ("died", 8, -8)


def test_the_process_ends_with_the_model(ort_cpu: type[omb.Preset]) -> None:
    prepared: Any = ort_cpu.prepare(quotient(), isolate=True)
    result, pid = prepared.run(GOOD), prepared.pid
    prepared.close()
    assert is_gone(pid)
    assert result[0].tolist() == [3, -8]
    with pytest.raises(omb.RunError, match="closed"):
        prepared.run(GOOD)
    prepared.close()
    other: Any = ort_cpu.prepare(quotient(), isolate=True)
    pid = other.pid
    del other
    gc.collect()
    assert is_gone(pid)


def test_descriptors_and_processes_are_not_left_behind(ort_cpu: type[omb.Preset]) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    before = count()
    prepared: Any = ort_cpu.prepare(quotient(), isolate=True)
    for _ in range(2):
        with pytest.raises(omb.EngineCrashedError):
            prepared.run(DEADLY)
        prepared.run(GOOD)
    prepared.close()
    gc.collect()
    assert count() == before


def test_a_run_that_takes_too_long_is_ended(ort_cpu: type[omb.Preset]) -> None:
    with ort_cpu.prepare(endless(), isolate=True, time_limit=20) as prepared:
        assert prepared.run(np.array(5))[0] == 5
        prepared._host._limit = 1.0
        with pytest.raises(omb.EngineCrashedError, match="more than 1 s while it ran"):
            prepared.run(np.array(2**60))
        prepared._host._limit = 20.0
        assert prepared.run(np.array(6))[0] == 6


def test_ctrl_c_ends_a_run_and_leaves_the_model_usable(ort_cpu: type[omb.Preset]) -> None:
    with ort_cpu.prepare(endless(), isolate=True) as prepared:
        pid = prepared.pid
        timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            prepared.run(np.array(2**60))
        assert is_gone(pid)
        assert prepared.run(np.array(6))[0] == 6


def test_a_forked_process_starts_its_own(isolated: Any) -> None:
    isolated.run(GOOD)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            same = isolated.run(GOOD)[0].tolist() == [3, -8]
            isolated.close()
            os.write(writes, b"y" if same else b"n")
        os._exit(0)
    os.close(writes)
    assert os.read(reads, 1) == b"y"
    os.close(reads)
    os.waitpid(child, 0)
    assert isolated.run(GOOD)[0].tolist() == [3, -8]


SCRIPT = """
import sys, time
import numpy as np
import onnx_multi_backend as omb
prepared = omb.OrtCpuBackend.prepare(sys.argv[1], isolate=True)
print(prepared.pid, flush=True)
prepared.run(np.array(2**60))
"""


def test_it_ends_with_a_host_that_is_killed_in_the_midst_of_a_run(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    """The script has no ``if __name__ == "__main__"``: its process is not started a second time."""
    onnx.save(endless(), tmp_path / "model.onnx")
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "model.onnx")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        pid = int(host.stdout.readline())
        time.sleep(0.5)
        host.kill()
    deadline = time.monotonic() + 20
    while not is_gone(pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert is_gone(pid)


def test_warnings_come_through(openvino_ep: type[omb.Preset]) -> None:
    made = models.model(
        [models.node("Relu", ["x"], ["z"]), models.node("Det", ["z"], ["y"])],
        [models.tensor("x", (2, 2))],
        [models.tensor("y", None)],
    )
    with pytest.warns(omb.FallbackWarning) as plain:
        openvino_ep.prepare(made)
    with pytest.warns(omb.FallbackWarning) as isolated:
        openvino_ep.prepare(made, isolate=True)
    assert [str(w.message) for w in isolated] == [str(w.message) for w in plain]
    assert isolated[0].filename == __file__


def test_a_model_that_was_changed_meanwhile_is_not_taken_for_the_same(
    ort_cpu: type[omb.Preset], tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(quotient(), path)
    with ort_cpu.prepare(path, isolate=True) as prepared:
        with pytest.raises(omb.EngineCrashedError):
            prepared.run(DEADLY)
        onnx.save(models.relu(), path)
        with pytest.raises(omb.InvalidModelError, match="changed"):
            prepared.run(GOOD)


def test_the_cache_serves_the_next_process(ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(quotient(), path)
    for _ in range(2):
        with ort_cpu.prepare(path, isolate=True, cache_dir=tmp_path / "cache") as prepared:
            with pytest.raises(omb.EngineCrashedError):
                prepared.run(DEADLY)
            assert prepared.run(GOOD)[0].tolist() == [3, -8]
