# SPDX-License-Identifier: Apache-2.0
"""What runs on an emulated processor stays on it, its children included."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx.backend.test import loader

from backend_test.processors import emulation
from backend_test.processors.official import adopt_cases, share_of, write_cases
from backend_test.processors.rewritten import Taken, recording, replaying
from backend_test.unit import models
from onnx_multi_backend.adapt import Adapted
from onnx_multi_backend.adapt.pipeline import untouched
from onnx_multi_backend.conformance import cases, run
from onnx_multi_backend.conformance.workers import worker
from onnx_multi_backend.conformance.workers.worker import fork_workers, make_context
from onnx_multi_backend.host import cpuid

ROOT = Path(__file__).parents[2]

#: It loads cpuid.py alone, for under emulation the whole package takes seconds to import.
SCRIPT = f"""
import importlib.util, multiprocessing, os, subprocess, sys
sys.path.insert(0, {str(ROOT)!r})
from backend_test.processors import emulation

def vendor():
    spec = importlib.util.spec_from_file_location("cpuid", {cpuid.__file__!r})
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answers = module.ask([(0, 0), (7, 0), (0x40000000, 0)])
    name = b"".join(part.to_bytes(4, "little") for part in (answers.leaves[0, 0].ebx, answers.leaves[0, 0].edx))
    emulated = answers.leaves[0x40000000, 0].ebx == int.from_bytes(b"TCGT", "little")
    return f"{{name.decode()}} avx2={{answers.leaves[7, 0].ebx >> 5 & 1}} emulated={{emulated}}"

def tell(connection):
    connection.send(vendor())

if __name__ == "__main__":
    if sys.argv[1:]:
        print(vendor())
        sys.exit()
    emulation.enter()
    print("itself:", vendor(), os.environ.get("OPENBLAS_CORETYPE"))
    for method in ("fork", "forkserver", "spawn"):
        context = multiprocessing.get_context(method)
        ours, theirs = context.Pipe()
        process = context.Process(target=tell, args=(theirs,))
        process.start()
        print(f"{{method}}:", ours.recv())
        process.join()
    print("executed:", subprocess.check_output([sys.executable, __file__, "child"], text=True).strip())
"""


@pytest.mark.skipif(bool(emulation.why_not()), reason=emulation.why_not())
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Nehalem", "GenuineI avx2=0 emulated=True"),
        ("Haswell", "GenuineI avx2=1 emulated=True"),
        ("EPYC", "Authenti avx2=1 emulated=True"),
    ],
)
def test_the_children_of_an_emulated_process_are_emulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str
) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "SkylakeX")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    python = emulation.write_python(name, tmp_path)
    done = subprocess.run(
        [python, str(script)],
        env=emulation.environment(python),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "TCG doesn't support" not in done.stderr
    lines = done.stdout.splitlines()
    assert lines == [
        f"itself: {words} None",
        *(f"{way}: {words}" for way in ("fork", "forkserver", "spawn", "executed")),
    ]


def test_without_qemu_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(emulation.shutil, "which", lambda name: None)
    assert "the package qemu-user" in emulation.why_not()


def test_workers_are_forked_from_a_process_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("this platform does not fork")
    multiprocessing.get_start_method()  # makes "fork" of a method that nobody has chosen
    assert make_context().get_start_method() == "forkserver"
    monkeypatch.setattr(worker, "_forks", False)  # put back afterwards
    fork_workers()
    assert make_context().get_start_method() == "fork"


def test_cases_are_handed_on_as_they_were_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generated = cases.official_cases()
    for module, name in ((loader, "load_node_model_tests"), (run, "describe_cases")):
        monkeypatch.setattr(module, name, getattr(module, name))  # put back afterwards
    described = run.describe_cases()
    write_cases(tmp_path / "cases.pickle")
    adopt_cases(tmp_path / "cases.pickle")
    adopted = cases.official_cases.__wrapped__()
    assert list(adopted) == list(generated)
    assert run.describe_cases() == described
    assert all(adopted[name].model == case.model for name, case in generated.items())
    assert not any(adopted[name] is case for name, case in generated.items() if case.kind == "node")


def test_one_processor_of_each_instruction_set_is_emulated() -> None:
    assert set(emulation.VECTORS) == set(emulation.PROCESSORS)
    assert [emulation.VECTORS[name] for name in emulation.EACH_INSTRUCTION_SET] == ["SSE4.2", "AVX2"]
    assert {*emulation.VECTORS.values()} == {"SSE4.2", "AVX2"}


def test_each_case_falls_to_one_processor() -> None:
    names = [f"test_{i}_cpu" for i in range(2000)]
    shares = [share_of(names, f"{i}/3") for i in range(3)]
    assert sorted(name for share in shares for name in share) == sorted(names)
    assert min(map(len, shares)) > len(names) / 4
    assert share_of(names[:9], "0/1") == names[:9]
    for i in range(3):  # a sample runs where the whole does
        assert set(share_of(names, f"{i}/9")) < set(shares[i])


def test_what_the_host_had_rewritten_is_shown_first() -> None:
    model = untouched(models.relu())
    written = [untouched(models.one_node(name, [models.tensor("x")], [models.tensor("y")])) for name in ("Abs", "Neg")]
    asked = []

    def lower(adapted: Adapted) -> Iterator[Adapted]:
        asked.append(adapted)
        yield from written

    def taken_by_an_engine(lowered: Iterator[Adapted]) -> Adapted | None:
        return next((made for made in lowered if made.proto.graph.node[0].op_type == "Neg"), None)

    taken: Taken = {}
    assert taken_by_an_engine(recording(lower, taken)(model)) is written[1]
    assert list(taken.values()) == [written[1]]
    del asked[:]
    assert taken_by_an_engine(replaying(lower, taken)(model)) is written[1]
    assert not asked
    assert list(replaying(lower, taken)(model)) == [written[1], *written]
    assert list(recording(lower, taken)(model)) == written  # refused, both of them
    assert not taken
