# SPDX-License-Identifier: Apache-2.0
"""Models that move and compare strings run on OpenVINO, which is given codes for them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, helper
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from backend_test.unit import models
from onnx_multi_backend.engines.wrappers import coded
from onnx_multi_backend.models.tensors import tensor_info


def parsed(graph: str, opset: int = 19, functions: str = "") -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": {opset}, "local": 1]> g {graph} {functions}')


def text(*words: str) -> np.ndarray:
    return np.array(words, object)


def expected(model: ModelProto, *feeds: Any) -> list[np.ndarray]:
    """What ONNX's evaluator makes of the inputs."""
    named = {value.name: np.asarray(x) for value, x in zip(model.graph.input, feeds, strict=True)}
    made = [np.asarray(result) for result in ReferenceEvaluator(model).run(None, named)]
    return [result.astype(object) if result.dtype.kind in "UT" else result for result in made]


def require_equal(got: np.ndarray, right: np.ndarray) -> None:
    assert got.dtype == right.dtype
    assert got.shape == right.shape
    assert got.tolist() == right.tolist()
    assert got.dtype != object or all(type(word) is str for word in got.flat)


A, B = text("a", "", "ü日本", "a", "z"), text("new", "ü")
NUMBER = np.array

#: A graph, and the inputs of two runs or more.
FORMS: dict[str, tuple[str, list[list[Any]]]] = {
    "Identity": ("(string[n] x) => (string[n] y) { y = Identity (x) }", [[A], [B], [text()], [A]]),
    "an input as output": ("(string[n] x) => (string[n] x, string[n] y) { y = Identity (x) }", [[A], [B]]),
    "Equal and Where beside a constant": (
        '(string[n] x) => (bool[n] y, string[n] z) <string[1] c = {"ü"}> { y = Equal (x, c) z = Where (y, c, x) }',
        [[A], [B]],
    ),
    "0-d": (
        '(string x) => (string y, bool z) <string c = {"hé"}> { y = Identity (x) z = Equal (x, c) }',
        [[NUMBER("hé", object)], [NUMBER("", object)]],
    ),
    "Gather of a table": (
        '(int64[n] i) => (string[n] y) <string[4] c = {"a", "", "日本", "a"}> { y = Gather (c, i) }',
        [[NUMBER([0, 3, 2])], [NUMBER([1])]],
    ),
    "Shape and Size": (
        '(string[n, m] x) => (int64[2] y, int64 z, string w) { y = Shape (x) z = Size (x) w = Constant <value_string = "é"> () }',
        [[A[:4].reshape(2, 2)], [B.reshape(2, 1)]],
    ),
    "Reshape, Transpose, Unsqueeze, Squeeze and Flatten": (
        """(string[n, 2] x) => (string[2, m] y, string[k] z, string[j, l] w) <int64[2] s = {2, -1}, int64[1] a = {0}, int64[1] f = {-1}> {
            r = Reshape (x, s) y = Transpose (r) u = Unsqueeze (r, a) q = Squeeze (u, a) z = Reshape (q, f) w = Flatten <axis = 2> (u)
        }""",
        [[A[:4].reshape(2, 2)], [B.reshape(1, 2)]],
    ),
    "Concat, Slice, Expand, Tile and Split": (
        """(string[n] x, string[m] w) => (string[k] y, string[2, l] z, string[h] p, string[i] q)
        <int64[1] one = {1}, int64[1] far = {99}, int64[2] e = {2, 1}, int64[1] t = {2}> {
            c = Concat <axis = 0> (x, w) y = Slice (c, one, far) z = Expand (c, e) d = Tile (c, t) p, q = Split <num_outputs = 2> (d)
        }""",
        [[A, B], [B, text("a", "", "new")]],
    ),
    "Compress": (
        "(string[n] x, bool[n] c) => (string[m] y) { y = Compress <axis = 0> (x, c) }",
        [[A, NUMBER([1, 0, 1, 1, 0], bool)], [B, NUMBER([0, 0], bool)]],
    ),
    "GatherElements, GatherND and ScatterND": (
        """(string[n] x, int64[m] i, string[m] u) => (string[m] y, string[m] z, string[n] w) <int64[1] a = {1}> {
            j = Unsqueeze (i, a) y = GatherElements (x, i) z = GatherND (x, j) w = ScatterND (x, j, u)
        }""",
        [[A, NUMBER([3, 0]), B], [B, NUMBER([1]), text("zz")]],
    ),
    "SequenceAt": (
        "(string[n] x, string[m] w) => (string[k] y) { s = SequenceConstruct (x, w) i = Constant <value_int = 1> () y = SequenceAt (s, i) }",
        [[A, B], [B, text("")]],
    ),
    "SequenceEmpty": (
        """(string[n] x) => (string[m] y) {
            e = SequenceEmpty <dtype = 8> () s = SequenceInsert (e, x) t = SequenceInsert (s, x) y = ConcatFromSequence <axis = 0> (t)
        }""",
        [[A], [B]],
    ),
    "If": (
        """(bool b, string[n] x) => (string[m] y) { y = If (b) <
            then_branch = t () => (string[k] u) { v = Identity (x) u = Concat <axis = 0> (x, v) },
            else_branch = e () => (string[j] w) { v = Shape (x) w = Constant <value_strings = ["q", "ü", ""]> () }
        > }""",
        [[NUMBER(True), A], [NUMBER(False), B], [NUMBER(True), B]],
    ),
    "Loop": (
        """(int64 n, string[k] x, string w) => (string[k] y, string[j, k] z) <string v = {"né"}> { c = Constant <value = bool {1}> () y, z = Loop <
            body = b (int64 i, bool d, string[k] s) => (bool f, string[k] t, string[k] o) {
                f = Identity (d) e = Equal (s, w) t = Where (e, v, s) o = Identity (s)
            }
        > (n, c, x) }""",
        [[NUMBER(3), A, NUMBER("a", object)], [NUMBER(2), B, NUMBER("new", object)]],
    ),
    "Scan": (
        """(string[n, m] x, string[m] w) => (string[m] y, string[n, m] z) { y, z = Scan <num_scan_inputs = 1,
            body = b (string[m] s, string[m] t) => (string[m] v, string[m] o) { e = Equal (s, t) v = Where (e, s, t) o = Identity (s) }
        > (w, x) }""",
        [[A[:4].reshape(2, 2), text("ü", "")], [text("", "b", "c", "ü", "e", "f").reshape(3, 2), B]],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_strings_are_moved_and_compared(openvino: type[omb.Preset], form: str) -> None:
    model = parsed(FORMS[form][0])
    prepared = openvino.prepare(model)
    assert prepared.get_inputs() == [tensor_info(value) for value in model.graph.input]
    assert prepared.get_outputs() == [tensor_info(value) for value in model.graph.output]
    for feeds in FORMS[form][1]:
        for got, right in zip(prepared.run(feeds), expected(model, *feeds), strict=True):
            require_equal(got, right)


def test_pad_fills_with_empty_strings_or_with_what_it_is_given(openvino: type[omb.Preset]) -> None:
    graph = '(string[n] x, int64[2] p) => (string[m] y, string[m] z) <string c = {"ü"}> { y = Pad (x, p) z = Pad (x, p, c) }'
    prepared = openvino.prepare(parsed(graph))
    for x, pads in ((A, [1, 2]), (B, [0, 3])):
        for result, fill in zip(prepared.run([x, NUMBER(pads)]), ("", "ü"), strict=True):
            require_equal(result, np.pad(x, pads, constant_values=fill))


def test_one_hot_chooses_of_two_strings(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(
        parsed("(int64[n] i, string[2] v) => (string[n, 3] y) <int64 d = {3}> { y = OneHot (i, d, v) }")
    )
    right = text("ön", "", "", "", "", "ön").reshape(2, 3)
    require_equal(prepared.run([NUMBER([0, 2]), text("", "ön")])[0], right)
    require_equal(prepared.run([NUMBER([1]), text("off", "a")])[0], text("off", "a", "off").reshape(1, 3))


def test_a_single_string_need_be_no_array(openvino: type[omb.Preset]) -> None:
    result = openvino.prepare(parsed("(string x) => (string y) { y = Identity (x) }")).run("é")[0]
    require_equal(result, NUMBER("é", object))


def test_strings_of_a_local_function(openvino: type[omb.Preset]) -> None:
    function = """<domain: "local", opset_import: ["": 19]> f (a) => (b) {
        c = Constant <value_strings = ["é", "a"]> () b = Concat <axis = 0> (a, c) }"""
    model = parsed("(string[n] x) => (string[m] y) { y = local.f (x) }", functions=function)
    prepared = openvino.prepare(model)
    for x in (A, B):
        require_equal(prepared.run(x)[0], expected(model, x)[0])
    assert [a.pass_name for a in prepared.adaptations[:2]] == ["inline_functions", "string_codes"]


def test_numbers_beside_strings_stay_numbers(openvino: type[omb.Preset]) -> None:
    graph = "(string[n] x, int32[n] i) => (int32[n] j, string[n] y) { j = Identity (i) y = Identity (x) }"
    got, words = openvino.prepare(parsed(graph)).run([B, NUMBER([1, 0], np.int32)])
    require_equal(got, NUMBER([1, 0], np.int32))
    require_equal(words, B)


def test_what_is_done_is_told(openvino: type[omb.Preset]) -> None:
    told = openvino.prepare(parsed(FORMS["Equal and Where beside a constant"][0])).adaptations
    assert [a.node for a in told if a.pass_name == "string_codes"] == ["input x", "output z", "1 constant"]
    assert not openvino.prepare(parsed("(float[n] x) => (float[n] y) { y = Identity (x) }")).adaptations


@pytest.mark.parametrize(
    "graph",
    [
        "(float[n] x) => (string[n] y) { y = Cast <to = 8> (x) }",
        "(string[n] x) => (float[n] y) { y = Cast <to = 1> (x) }",
        "(string[n] x) => (string[m] y) { y = Unique (x) }",
        "(string[n] x) => (string[m] z) { y = Identity (x) z = StringNormalizer (y) }",
    ],
)
def test_what_computes_with_strings_is_refused(openvino: type[omb.Preset], graph: str) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="nothing with strings"):
        openvino.prepare(parsed(graph))


def test_an_operator_of_another_domain_that_makes_strings_is_refused(openvino: type[omb.Preset]) -> None:
    encoder = helper.make_node(
        "LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_int64s=[1], values_strings=["one"]
    )
    made = models.model(
        [encoder, models.node("Identity", ["y"], ["z"])],
        [models.tensor("x", ["N"], models.INT64)],
        [models.tensor("z", ["N"], models.STRING)],
        opsets={"ai.onnx.ml": 4},
    )
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(made)


@pytest.mark.parametrize("kind", ["seq", "optional"])
@pytest.mark.parametrize("place", ["input", "output"])
def test_sequences_and_optionals_of_strings_do_not_pass_the_boundary(
    openvino: type[omb.Preset], kind: str, place: str
) -> None:
    operator = {"seqinput": "ConcatFromSequence <axis = 0>", "seqoutput": "SequenceConstruct"}.get(
        kind + place, "OptionalGetElement" if place == "input" else "Optional"
    )
    given, made = f"{kind}(string[n])", "string[n]"
    if place == "output":
        given, made = made, given
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(parsed(f"({given} x) => ({made} y) {{ y = {operator} (x) }}"))


def test_adapt_false_leaves_strings_alone(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="nothing with strings"):
        openvino.prepare(parsed(FORMS["Identity"][0]), adapt=False)


def test_the_default_of_an_input_is_used_and_cannot_be_replaced(openvino: type[omb.Preset]) -> None:
    graph = "(string[n] x, string[2] w) => (string[m] y) { y = Concat <axis = 0> (x, w) }"
    model = parsed(graph)
    model.graph.initializer.append(helper.make_tensor("w", models.STRING, [2], ["dé", b""]))
    prepared = openvino.prepare(model)
    for x in (A, B):
        require_equal(prepared.run({"x": x})[0], np.concatenate([x, text("dé", "")]))
    with pytest.raises(omb.UnsupportedModelError, match="OpenVINO fixes inputs with a default"):
        prepared.run({"x": A, "w": B})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (text("a", 1), r"element \(1,\) is a int, not a string"),
        (np.zeros(2, np.float32), "the model wants strings"),
        (NUMBER([b"\xff"], object), "is not text in UTF-8"),
        (text("a").reshape(1, 1), "has rank 2"),
    ],
)
def test_bad_inputs_are_told_as_ever(openvino: type[omb.Preset], given: np.ndarray, words: str) -> None:
    with pytest.raises(omb.InputError, match=words):
        openvino.prepare(parsed(FORMS["Identity"][0])).run(given)


def test_strings_of_other_forms(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(parsed(FORMS["Identity"][0]))
    for given in (A.astype("U"), np.array([w.encode() for w in A], object), np.array([A, A], object).T[:, 0]):
        require_equal(prepared.run(given)[0], A)


def test_runs_of_several_threads_do_not_share_codes(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(parsed(FORMS["Equal and Where beside a constant"][0]))
    wrong: list[object] = []

    def work(mine: int) -> None:
        for i in range(50):
            x = text(*(f"{mine} {i} {j}" for j in range(1 + (mine + i) % 5)), "ü")
            same, words = prepared.run(x)
            if words.tolist() != x.tolist() or same.tolist() != (x == "ü").tolist():
                wrong.append((x, words))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_strings_of_a_run_are_forgotten(openvino: type[omb.Preset]) -> None:
    prepared = openvino.prepare(parsed(FORMS["Equal and Where beside a constant"][0]))
    session: Any = prepared._session
    while not isinstance(session, coded.CodedSession):
        session = session._session
    for i in range(3):
        prepared.run(text(*(f"{i} {j}" for j in range(100))))
    assert session._codes == {"": 0, "ü": 1}
    assert session._words.tolist() == ["", "ü"]


def test_more_strings_than_the_engine_tells_apart(openvino: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = openvino.prepare(parsed(FORMS["Identity"][0]))
    monkeypatch.setattr(coded, "MOST_CODES", 3)
    require_equal(prepared.run(text("a", "b", "a", ""))[0], text("a", "b", "a", ""))
    with pytest.raises(omb.InputError, match="4 different strings, and the engine distinguishes 3"):
        prepared.run(text("a", "b", "c"))


def test_in_another_process_in_batches_and_with_precision_bf16(openvino: type[omb.Preset]) -> None:
    model = parsed(FORMS["Equal and Where beside a constant"][0])
    with openvino.prepare(model, isolate=True) as prepared:
        for x in (A, B):
            require_equal(prepared.run(x)[1], x)
    many = text(*(f"wörd {i}" for i in range(3000)))
    for prepared in (openvino.prepare(model), openvino.prepare(model, precision="bf16")):
        for x, (same, words) in zip((A, many), prepared.run_many([A, many]), strict=True):
            require_equal(same, x == "ü")
            require_equal(words, x)


def test_what_is_kept_in_a_cache(openvino: type[omb.Preset], tmp_path: Path) -> None:
    model = parsed(FORMS["Gather of a table"][0]).SerializeToString()
    for _ in range(2):
        prepared = openvino.prepare(model, cache_dir=tmp_path)
        assert prepared.run(NUMBER([2, 1]))[0].tolist() == ["日本", ""]
        assert prepared.run(NUMBER([3]))[0].tolist() == ["a"]
    assert prepared._sessions.make._cold is None  # the second came out of the cache


def test_strings_have_no_fixed_buffers(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="only tensors of numbers have fixed buffers"):
        openvino.prepare(parsed(FORMS["Identity"][0])).bind(A)
