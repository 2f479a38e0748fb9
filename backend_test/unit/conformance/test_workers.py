# SPDX-License-Identifier: Apache-2.0
"""A crash or a hang costs one case, and no process is left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from onnx_multi_backend.conformance import BackendLoadError, BackendRef, Case, CaseResult, Label
from onnx_multi_backend.conformance.workers import describe_cases, run_in_workers

BAD = BackendRef("examples.bad_backend.BadBackend", "bad")


def run(*names: str, ref: BackendRef = BAD, jobs: int = 2, timeout: float = 20.0) -> dict[str, CaseResult]:
    cases = [Case(f"test_{name}_cpu", "node") for name in names]
    return {r.name: r for r in run_in_workers(ref, cases, jobs=jobs, timeout=timeout)}


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
        ("not a path", "is no dotted path"),
    ],
)
def test_a_backend_that_cannot_be_loaded_is_an_error(path: str, message: str) -> None:
    with pytest.raises(BackendLoadError, match=message):
        run("abs", ref=BackendRef(path))


def test_leaving_early_stops_the_workers() -> None:
    results = run_in_workers(BAD, [Case("test_add_cpu", "node"), Case("test_neg_cpu", "node")], jobs=2, timeout=60.0)
    assert next(results).name == "test_add_cpu"
    results.close()
    deadline = time.monotonic() + 10
    while (left := _workers()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not left


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
