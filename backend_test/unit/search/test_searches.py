# SPDX-License-Identifier: Apache-2.0
"""The searches find what is planted, live through it, and go on where they were."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from backend_test.search import isolation
from backend_test.search.answers import DEAD, HANG, REFUSED, RESULT, Answer
from backend_test.search.evaluator import errs
from backend_test.search.findings import KNOWN
from backend_test.search.judge import (
    DISPUTED,
    OK,
    RANGE,
    WORSE_REFUSED,
    WORSE_WRONG,
    WRONG,
    Verdict,
    judge,
    within_precision,
)
from backend_test.search.mutations import tensors
from backend_test.search.sensitivity import _Moved, sensitive
from backend_test.search.trial import Trial, approximate, try_model

pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the searches fork")

ROOT = Path(__file__).parents[3]
#: Graphs of this operator, and of those that hold others.
RELU = ["--operators", "Relu"]


def search(tool: str, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a search in a process of its own, which forks and so must not have an engine's threads."""
    command = [sys.executable, "-m", f"backend_test.{tool}", f"--out={out}", "--jobs=1", *arguments]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def journal(out: Path, preset: str) -> list[dict[str, Any]]:
    lines = (out / preset / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def planted(name: str) -> str:
    return f"backend_test.unit.search.planted.{name}"


@pytest.mark.parametrize(
    ("fault", "category", "count"),
    [
        ("Wrong", "worse-wrong", 6),
        ("Dies", "dead", 6),
        ("Raises", "untyped", 6),
        ("Hangs", "hang", 2),
        ("Hungry", "memory", 2),
        ("Refuses", "worse-refused", 6),
    ],
)
def test_a_planted_fault_is_found_and_the_search_goes_on(tmp_path: Path, fault: str, category: str, count: int) -> None:
    preset = planted(fault)
    limits = (f"--seconds={0.5 if fault == 'Hangs' else 20}", "--memory=0.5", f"--count={count}", "--seed=3")
    done = search("differential", tmp_path, f"--preset={preset}", *limits, *RELU)
    assert done.returncode == 1, done.stdout + done.stderr
    entries = journal(tmp_path, preset)
    assert len(entries) == count
    found = [e for e in entries if e["category"] == category]
    assert found, entries
    assert all("Relu" in e["signature"] for e in found)
    folders = list((tmp_path / preset / "findings").iterdir())
    assert folders
    for folder in folders:
        model = onnx.load(folder / "model.onnx")
        onnx.checker.check_model(model)
        fed = np.load(folder / "inputs_0.npz")
        assert set(fed) == {i.name for i in model.graph.input}
        assert category in (folder / "report.txt").read_text()


def test_a_finding_is_shrunk_to_the_node_that_shows_it(tmp_path: Path) -> None:
    preset = planted("Wrong")
    arguments = ("--count=40", "--seed=5", "--operators", "Relu,Neg,Abs,Transpose")
    search("differential", tmp_path, f"--preset={preset}", *arguments)
    sizes = [
        len([n for n in onnx.load(folder / "model.onnx").graph.node if n.op_type != "Constant"])
        for folder in (tmp_path / preset / "findings").iterdir()
    ]
    assert sizes
    assert min(sizes) == 1


def test_a_preset_without_a_fault_has_no_findings(tmp_path: Path) -> None:
    done = search("differential", tmp_path, "--preset=OrtCpu", "--count=20", "--seed=3", *RELU)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {e["category"] for e in journal(tmp_path, "OrtCpu")} <= {"ok", "refused", "sensitive", "disputed"}


def test_a_known_finding_does_not_fail_the_search(tmp_path: Path) -> None:
    known = tmp_path / "known.toml"
    known.write_text('[[finding]]\nsignature = "*Relu*"\nreason = "planted"\n')
    arguments = (f"--preset={planted('Wrong')}", "--count=6", "--seed=3", *RELU)
    done = search("differential", tmp_path / "out", *arguments, f"--known={known}")
    assert done.returncode == 0, done.stdout
    assert "planted" in done.stdout


def test_a_seed_makes_the_same_again_and_resume_goes_on(tmp_path: Path) -> None:
    arguments = ("--preset=OrtCpu", "--seed=11")
    search("differential", tmp_path / "one", *arguments, "--count=12")
    search("differential", tmp_path / "two", *arguments, "--count=5")
    done = search("differential", tmp_path / "two", *arguments, "--count=12", "--resume")
    assert "12 tasks (7 now" in done.stdout, done.stdout + done.stderr

    def sorted_entries(name: str) -> list[dict[str, Any]]:
        return sorted(journal(tmp_path / name, "OrtCpu"), key=lambda e: int(e["i"]))

    assert sorted_entries("one") == sorted_entries("two")
    other = search("differential", tmp_path / "two", "--preset=OrtCpu", "--seed=12", "--count=12", "--resume")
    assert other.returncode == 2
    assert "--resume" in other.stderr


@pytest.mark.parametrize(("fault", "category"), [("Dies", "dead"), ("Raises", "untyped")])
def test_the_mutator_finds_what_is_planted(tmp_path: Path, fault: str, category: str) -> None:
    preset = planted(fault)
    done = search("fuzz", tmp_path, f"--preset={preset}", "--count=25", "--seed=4", "--cases", "test_relu")
    assert done.returncode == 1, done.stdout + done.stderr
    found = [e for e in journal(tmp_path, preset) if e["category"] == category]
    assert found
    assert len(journal(tmp_path, preset)) == 25
    for report in (tmp_path / preset / "findings").glob("*/report.txt"):
        assert "compatibility: " not in report.read_text(), "a model that ends the process is not prepared for that too"


@pytest.mark.parametrize("tool", ["differential", "fuzz"])
def test_each_known_finding_has_a_reason(tool: str) -> None:
    entries = tomllib.loads((KNOWN / f"{tool}.toml").read_text(encoding="utf-8"))["finding"]
    assert all(entry.keys() == {"signature", "reason"} and all(entry.values()) for entry in entries)


@pytest.mark.parametrize(("got", "noise"), [(-1.49e-8, True), (1e-5, False)])
def test_what_is_left_of_a_difference_is_noise(got: float, noise: bool) -> None:
    """A window of Blackman ends in 0.42 - 0.5 + 0.08, of which float32 leaves something, or 0."""
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (int64 n) => (float[m] y) { y = BlackmanWindow <periodic = 0> (n) }'
    )
    answers = {
        name: Answer(RESULT, [[np.float32([value, 0])]])
        for name, value in (("ours", got), ("bare", 1.49e-8), ("unoptimized", 0), ("reference", 0))
    }
    assert approximate(model, Trial(Verdict("worse-wrong"), answers)) is noise


@pytest.mark.parametrize(("second", "category"), [(7.0, DISPUTED), (9.0, WORSE_WRONG)])
def test_each_output_is_judged_by_itself(second: float, category: str) -> None:
    """The references agree on neither output together: the one errs in the first, the other in the second."""

    def answer(*numbers: float, runs: int = 2) -> Answer:
        return Answer(RESULT, [[np.float32([n]) for n in numbers]] * runs)

    references = {"unoptimized": answer(5, 7), "reference": answer(4, 8)}
    assert judge(answer(4, second, runs=3), answer(5, 7), references).category == category


@pytest.mark.parametrize("length", [2, 3])
def test_sequences_of_several_shapes_are_compared(length: int) -> None:
    one = [np.ones(2, np.float32), np.ones(1, np.float32)]
    other = [np.ones(2, np.float32), np.float32([1 + 1e-7]), np.ones(1, np.float32)]
    assert within_precision(one, other[:length]) == (length == 2)
    assert not within_precision(one, None)


@pytest.mark.parametrize("number", [2**40, 7])
def test_a_refusal_for_the_range_of_int32_is_told_from_others(number: int) -> None:
    import onnx_multi_backend as omb

    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> g (int64[1] x) => (int64[1] y) { y = Identity (x) }'
    )
    words = "UnsupportedModelError: Openvino cannot run model"
    if number > 7:
        with pytest.raises(omb.InputError) as caught:
            omb.OpenvinoBackend.prepare(model).run([np.array([number])])
        words = f"InputError: {caught.value}"
    same = Answer(RESULT, [[np.array([number])]])
    verdict = judge(Answer(REFUSED, [], words, "run"), same, {"reference": same})
    assert verdict.category == (RANGE if number > 7 else WORSE_REFUSED)


def test_a_tensor_of_an_unknown_type_is_left_by_the_mutations_that_read_it() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> g (float[1] x) => (float[1] y) { y = Relu(x) }'
    )
    model.graph.initializer.add(name="t", data_type=1000, dims=[1], float_data=[1.0])
    before = model.SerializeToString()
    assert (tensors.numbers(model, random.Random(0)), tensors.data(model, random.Random(0))) == ("", "")
    assert model.SerializeToString() == before


def test_a_constant_of_a_node_is_rounded_otherwise_too() -> None:
    """Half way between two integers, a rounding makes another result."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g () => (float[1] y) {
        c = Constant <value = float[1] {2.5}> () y = Round (c) }"""
    )
    assert sensitive(model, [{}], [[np.float32([3])]] * 3)


def rounded_products() -> onnx.ModelProto:
    return onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g (float[3] x, float s) => (float[3] y) { p = Mul (x, s) y = Round (p) }"""
    )


def test_rounding_explains_what_lies_half_way_and_nothing_else() -> None:
    model, feeds = rounded_products(), [{"x": np.float32([1, 5, 8]), "s": np.array(0.5, np.float32)}] * 2
    assert sensitive(model, feeds, [[np.float32([1, 3, 4])]] * 3)
    assert not sensitive(model, feeds, [[np.float32([0, 2, 5])]] * 3)
    assert not sensitive(model, feeds, [[np.float32([0, 3, 5])]] * 3)


def test_another_shape_is_explained_by_a_shape_that_moves() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 18]> g (float[3] x) => (float[n] y) { y = Unique (x) }"""
    )
    near = np.float32([1, 1 + 1.2e-7, 2])
    assert sensitive(model, [{"x": near}], [[np.float32([1, 2])]])
    assert not sensitive(model, [{"x": np.float32([1, 2, 3])}], [[np.float32([1, 2])]])


@pytest.mark.parametrize(("opset", "axis", "told"), [(11, 1, True), (11, -1, False), (13, 1, False)])
def test_the_evaluator_has_the_newer_softmax_alone(opset: int, axis: int, told: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 7, opset_import: ["": {opset}]> g (float[2, 3, 4] x) => (float[2, 3, 4] y) {{
        y = Softmax <axis = {axis}> (x) }}"""
    )
    assert bool(errs(model)) is told


@pytest.mark.parametrize(("second", "category"), [(4.0, OK), (2.0, WRONG)])
def test_nan_of_a_type_without_a_tolerance_is_the_same_as_nan(second: float, category: str) -> None:
    right = np.array([np.nan, 4.0], np.float32).astype(ml_dtypes.float8_e8m0fnu)
    ours = np.array([np.nan, second], np.float32).astype(ml_dtypes.float8_e8m0fnu)
    references = {"unoptimized": Answer(RESULT, [[right]]), "reference": Answer(RESULT, [[right]])}
    assert judge(Answer(RESULT, [[ours]]), Answer(RESULT, [[ours]]), references).category == category


def test_roundings_are_looked_at_in_a_type_without_a_tolerance() -> None:
    moved = _Moved(np.array([np.nan, 4.0, 1.0], np.float32).astype(ml_dtypes.float8_e8m0fnu))
    moved.add(np.array([np.nan, 2.0, 1.0], np.float32).astype(ml_dtypes.float8_e8m0fnu))
    assert moved.explains(np.array([np.nan, 8.0, 1.0], np.float32).astype(ml_dtypes.float8_e8m0fnu))
    assert not moved.explains(np.array([np.nan, 4.0, 2.0], np.float32).astype(ml_dtypes.float8_e8m0fnu))


@pytest.mark.parametrize(("ceil_mode", "told"), [(0, False), (1, True)])
def test_the_evaluator_counts_a_last_window_beyond_the_image_as_a_whole_one(ceil_mode: int, told: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 19]> g (float[1, 1, 4, 5] x) => (float[1, 1, 2, 2] y) {{
        y = LpPool <ceil_mode = {ceil_mode}, kernel_shape = [3, 3], strides = [1, 3]> (x) }}"""
    )
    assert bool(errs(model)) is told


@pytest.mark.parametrize(("sizes", "shape", "told"), [("", (), True), ("[2]", (2,), False), ("[2, 3]", (2, 3), True)])
def test_the_evaluator_joins_the_rows_of_a_loop(sizes: str, shape: tuple[int, ...], told: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 19]> g (float{sizes} x, int64 n) => (float[{", ".join("rpq"[: len(shape) + 1])}] y) {{
            c = Constant <value = bool {{1}}> ()
            y = Loop <body = b (int64 i, bool d) => (bool f, float{sizes} z) {{ f = Identity (d) z = Neg (x) }}> (n, c) }}"""
    )
    assert bool(errs(model)) is told
    (rows,) = ReferenceEvaluator(model).run(None, {"x": np.zeros(shape, np.float32), "n": np.array(2)})
    assert (np.shape(rows) != (2, *shape)) is told


@pytest.mark.parametrize(("sizes", "told"), [("1, 3, 1, 1", True), ("n, 3, 1, 1", True), ("3, 3, 1, 1", False)])
def test_the_evaluator_has_as_many_channels_of_a_normalization_as_images(sizes: str, told: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 19]> g (float[{sizes}] x) => (float[{sizes}] y) {{
        y = LRN <alpha = 3.0, beta = 1.0, size = 3> (x) }}"""
    )
    assert bool(errs(model)) is told
    images = int(sizes[0]) if sizes[0].isdigit() else 1
    x = np.ones((images, 3, 1, 1), np.float32)
    (normalized,) = ReferenceEvaluator(model).run(None, {"x": x})
    assert np.allclose(normalized[0].ravel(), 1 / np.float32([3, 4, 3])) is not told


def test_strings_that_a_loop_passes_on_are_not_judged_by_onnxruntime() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 19]> g (string[2] x, int64 n) => (string[2] y, string[p, q] z) {
            c = Constant <value = bool {1}> ()
            y, z = Loop <body = b (int64 i, bool d, string[2] s) => (bool f, string[2] t, string[2] u) {
                f = Identity (d) t = Identity (x) u = Identity (s) }> (n, c, x) }"""
    )
    feeds = [{"x": np.array(words, object), "n": np.array(2)} for words in (["a", "b"], ["c", "d"])]

    def work(key: int, stages: isolation.Stages) -> list[str]:
        trial = try_model("OrtCpu", model, feeds, stages)
        return [trial.verdict.category, trial.answers["bare"].kind]

    ((_, (category, bare)),) = isolation.run(work, [1], jobs=1)
    assert category == OK
    assert bare in (DEAD, REFUSED)  # where the freed text is read, ONNX Runtime 1.24 may end the process


def test_a_stage_may_have_a_shorter_limit_than_the_others() -> None:
    def busy(note: Any) -> Answer:
        start = time.process_time()
        while time.process_time() < start + 1.0:
            pass
        return Answer(RESULT)

    def work(key: int, stages: isolation.Stages) -> list[str]:
        return [stages.run("short", busy, seconds=0.2).kind, stages.run("long", busy).kind]

    assert list(isolation.run(work, [1], jobs=1)) == [(1, [HANG, RESULT])]


def test_a_task_counts_for_itself_where_another_broke_the_memory() -> None:
    """What ends a worker before any stage of a task has to do so in a fresh one too."""
    seen: list[int] = []

    def work(key: int, stages: isolation.Stages) -> int:
        seen.append(key)
        if len(seen) > 1:  # another task came before it in this worker
            os.abort()
        return key

    assert sorted(isolation.run(work, [1, 2], jobs=1)) == [(1, 1), (2, 2)]

    def never(key: int, stages: isolation.Stages) -> int:
        os.abort()

    with pytest.raises(RuntimeError, match="task 1 ended its worker outside any stage"):
        list(isolation.run(never, [1], jobs=1))


@pytest.mark.parametrize("operator", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize(("stride", "told"), [(3, True), (2, False)])
def test_the_evaluator_has_no_windows_with_gaps_under_auto_pad(operator: str, stride: int, told: bool) -> None:
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["": 19]> g (float[1, 1, n, n] x) => (float[1, 1, m, m] y) {{
        y = {operator} <auto_pad = "SAME_UPPER", kernel_shape = [2, 2], strides = [{stride}, {stride}]> (x) }}"""
    )
    assert bool(errs(model)) is told
