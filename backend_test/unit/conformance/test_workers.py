# SPDX-License-Identifier: Apache-2.0
"""A crash or a hang costs one case, and no process is left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import onnx_multi_backend
from backend_test.unit.conformance.odd_backends import LOADS_A_FEW_TIMES
from onnx_multi_backend.conformance import BackendLoadError, BackendRef, Case, CaseResult, Label
from onnx_multi_backend.conformance.workers import describe_cases, load_worker, run_in_workers

BAD = BackendRef("examples.bad_backend.BadBackend", "bad")


def odd(name: str, **kwargs: Any) -> BackendRef:
    return BackendRef(f"backend_test.unit.conformance.odd_backends.{name}", name, **kwargs)


def run(
    *names: str, ref: BackendRef = BAD, jobs: int = 2, timeout: float = 20.0, memory: int | None = None
) -> dict[str, CaseResult]:
    cases = [Case(f"test_{name}_cpu", "node") for name in names]
    return {r.name: r for r in run_in_workers(ref, cases, jobs=jobs, timeout=timeout, memory=memory)}


def test_a_segfault_and_an_abort_cost_one_case_each() -> None:
    results = run("add", "abs", "mul", "ceil", "sub", "div", jobs=1)
    labels = {name: r.label for name, r in results.items()}
    right = {f"test_{name}_cpu": Label.PASS for name in ("add", "mul", "sub", "div")}
    assert labels == {**right, "test_abs_cpu": Label.CRASH, "test_ceil_cpu": Label.CRASH}
    assert results["test_abs_cpu"].reason == "the process died: SIGSEGV"
    assert results["test_ceil_cpu"].reason == "the process died: SIGABRT"
    assert "bad_backend.py" in results["test_abs_cpu"].error  # where it happened


def test_a_hang_is_stopped_and_the_worker_replaced() -> None:
    results = run("neg", "add", jobs=1, timeout=1.0)
    assert results["test_neg_cpu"].label == Label.TIMEOUT
    assert results["test_neg_cpu"].reason == "stopped after 1 s"
    assert results["test_neg_cpu"].duration_ms >= 1000
    assert "bad_backend.py" in results["test_neg_cpu"].error
    assert results["test_add_cpu"].label == Label.PASS


def test_the_other_ways_to_fail_keep_the_process() -> None:
    results = run("floor", "sign", "cos", "sin")
    assert {n: r.label for n, r in results.items()} == {
        "test_floor_cpu": Label.FAIL,
        "test_sign_cpu": Label.SKIP,
        "test_cos_cpu": Label.UNSUPPORTED,
        "test_sin_cpu": Label.FAIL,
    }


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nosuchpackage.backend", "there is no module 'nosuchpackage'"),
        ("onnx.nosuchthing", "'onnx' has no 'nosuchthing'"),
        ("onnx.helper", "has no prepare and no supports_device"),
        ("not a path", "is not a dotted path"),
        ("backend_test.unit.conformance.exits_at_import", "cannot be imported: SystemExit: 5."),
    ],
)
def test_a_backend_that_cannot_be_loaded_is_an_error(path: str, message: str) -> None:
    with pytest.raises(BackendLoadError, match=message):
        load_worker(BackendRef(path))
    assert not _workers()


def test_a_device_that_the_backend_lacks_is_an_error() -> None:
    with pytest.raises(BackendLoadError, match="does not support the device 'CUDA' here"):
        load_worker(odd("OddBackend", devices=("CPU", "CUDA")))


def test_cases_that_cannot_run_any_more_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "licensed_once.py").write_text(LOADS_A_FEW_TIMES.format(times=1))
    monkeypatch.syspath_prepend(tmp_path)
    ref = BackendRef("licensed_once.Licensed")
    first = load_worker(ref)
    cases = [Case(f"test_{name}_cpu", "node") for name in ("abs", "ceil", "add", "sub")]
    results = {r.name: r for r in run_in_workers(ref, cases, jobs=1, first=first)}
    assert [r.label for r in results.values()] == [Label.PASS, Label.CRASH, Label.CRASH, Label.CRASH]
    assert results["test_ceil_cpu"].reason == "the process died: SIGABRT"
    assert results["test_sub_cpu"].reason.startswith("not run: no process is left. 'licensed_once.Licensed' cannot")
    assert "the licence is in use" in results["test_sub_cpu"].reason


def test_the_other_workers_go_on_without_one_that_cannot_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "licensed_for_one.py").write_text(LOADS_A_FEW_TIMES.format(times=1))
    monkeypatch.syspath_prepend(tmp_path)
    results = run("abs", "add", "sub", "mul", ref=BackendRef("licensed_for_one.Licensed"))
    assert {r.label for r in results.values()} == {Label.PASS}


def test_a_crash_is_noticed_at_once_though_a_child_holds_the_connection() -> None:
    (result,) = run("abs", ref=odd("AbortsBesideAChild"), jobs=1, timeout=15.0).values()
    assert (result.label, result.reason) == (Label.CRASH, "the process died: SIGABRT")
    assert result.duration_ms < 10_000


def test_a_backend_may_use_processes() -> None:
    (result,) = run("abs", ref=odd("UsesProcesses"), jobs=1).values()
    assert result.label == Label.PASS, result.error


@pytest.mark.parametrize("backend", ["ClosesStdout", "DropsStdout", "ReplacesStderr", "ClosesDescriptorTwo"])
def test_what_a_backend_does_to_its_streams_harms_no_other_case(backend: str) -> None:
    results = run("abs", "add", "sub", ref=odd(backend), jobs=1)
    assert {n: r.label for n, r in results.items()} == dict.fromkeys(results, Label.PASS)


def test_last_words_are_kept_though_the_streams_were_closed_before() -> None:
    results = run("abs", "neg", ref=odd("ClosesStdoutThenDies"), jobs=1)
    assert results["test_abs_cpu"].label == Label.PASS
    assert results["test_neg_cpu"].label == Label.CRASH
    assert "loading the weights" in results["test_neg_cpu"].error
    assert "Fatal Python error: Aborted" in results["test_neg_cpu"].error


def test_where_a_process_died_is_told_though_it_had_closed_its_streams() -> None:
    (result,) = run("abs", ref=odd("ClosesDescriptorTwoAndDies"), jobs=1).values()
    assert "Fatal Python error: Aborted" in result.error


@pytest.mark.parametrize(
    ("backend", "label", "headline"),
    [
        ("Exits", Label.FAIL, "SystemExit: 3"),
        ("RaisesNoException", Label.FAIL, "GeneratorExit: not an Exception"),
        ("RaisesWithoutWords", Label.FAIL, "MuteError: (its message cannot be read: TypeError)"),
        ("SkipsAsPytestDoes", Label.SKIP, "not today"),
        ("PrintsAndDies", Label.CRASH, "the process died: SIGABRT"),
    ],
)
def test_whatever_a_backend_raises_is_told_in_a_line(backend: str, label: Label, headline: str) -> None:
    results = run("abs", "add", ref=odd(backend), jobs=1)
    assert [(r.label, r.headline) for r in results.values()] == [(label, headline)] * 2


def test_of_a_long_message_the_beginning_and_the_end_are_kept() -> None:
    (result,) = run("abs", ref=odd("IsLongWinded"), jobs=1).values()
    assert result.label == Label.FAIL
    assert result.headline == "ValueError: it began here"
    assert result.error.endswith("and so on, and ended here")
    assert "characters are left out" in result.error
    assert len(result.error) < 11_000


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits what a process holds")
def test_a_case_that_takes_too_much_memory_fails_alone() -> None:
    results = run("abs", "add", "sub", ref=odd("Hoards"), jobs=1, memory=3 * 2**30)
    assert {n: r.label for n, r in results.items()} == {
        "test_abs_cpu": Label.FAIL,
        "test_add_cpu": Label.PASS,
        "test_sub_cpu": Label.PASS,
    }
    assert "MemoryError" in results["test_abs_cpu"].headline
    assert results["test_abs_cpu"].reason == "more memory is needed than the 3,072 MiB that a process may have"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits what a process holds")
def test_a_backend_that_cannot_be_loaded_in_the_memory_is_told_the_limit() -> None:
    with pytest.raises(BackendLoadError, match=r"hold 1 MiB\.|loading it ended the process"):
        load_worker(BackendRef("onnx_multi_backend.OrtCpuBackend"), memory=2**20)


@pytest.mark.parametrize(
    ("backend", "versions"),
    [
        ("SaysItsVersion", {"Odd Engine": "1.2 beta"}),
        ("SaysItsName", {"Odd Engine": ""}),
        ("OddBackend", {}),
    ],
)
def test_a_backend_may_say_its_name_and_version(backend: str, versions: dict[str, str]) -> None:
    worker = load_worker(odd(backend))
    try:
        assert worker.versions == versions
    finally:
        worker.end()


def test_leaving_early_stops_the_workers() -> None:
    results = run_in_workers(BAD, [Case("test_add_cpu", "node"), Case("test_neg_cpu", "node")], jobs=2, timeout=60.0)
    assert next(results).name == "test_add_cpu"
    results.close()
    deadline = time.monotonic() + 10
    while (left := _workers()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


SCRIPT = """
from backend_test import cases_once
from onnx_multi_backend.conformance import BackendRef, Case
from onnx_multi_backend.conformance.workers import run_in_workers

if __name__ == "__main__":
    cases_once.hand_on()
    bad = BackendRef("examples.bad_backend.BadBackend")
    results = run_in_workers(bad, [Case("test_neg_cpu", "node"), Case("test_add_cpu", "node")], jobs=2, timeout=600)
    print(next(results).name)
"""


def test_a_script_ends_although_a_worker_hangs(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": str(Path(onnx_multi_backend.__file__).parents[1])}
    done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("test_add_cpu\n", "", 0)


def _workers() -> list[str]:
    """Live processes in sessions of their own whose grandparent is this one: its workers."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = status.read_text().split(" ", 1)
        except OSError:
            continue
        _, parent, _, session = rest.rpartition(")")[2].split()[:4]
        if session == pid and _parent(parent) == str(os.getpid()):
            found.append(pid)
    return found


def _parent(pid: str) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    except OSError:
        return ""


def test_cases_are_described_in_onnx_order() -> None:
    facts = describe_cases()
    assert len(facts) > 2000
    assert facts["test_abs"].operators[0].operator == ("ai.onnx", "Abs")
    assert {f.kind for f in facts.values()} == {"node", "real", "simple", "pytorch-converted", "pytorch-operator"}
    loop = {u.op_type: u for u in facts["test_loop11"].operators}
    assert (loop["Loop"].top_level, loop["Slice"].top_level) == (True, False)
    assert (loop["Slice"].since_version, loop["Slice"].types) == (11, ("tensor(float)", "tensor(int64)"))
