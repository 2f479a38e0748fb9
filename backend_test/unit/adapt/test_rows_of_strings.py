# SPDX-License-Identifier: Apache-2.0
"""Rows of strings that a Loop collects: ONNX Runtime empties what they share memory with, and before 1.31 its process ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto, helper

import onnx_multi_backend as omb
from onnx_multi_backend.host.applies import applies

ENDS = applies({"onnxruntime": "<1.31"})


def parsed(graph: str, opset: int = 19, functions: str = "") -> ModelProto:
    domains = f'"": {opset}, "own": 1' if functions else f'"": {opset}'
    return onnx.parser.parse_model(f"<ir_version: 9, opset_import: [{domains}]> g {graph} {functions}")


def loop(nodes: str, row: str = "string[k]") -> str:
    """A Loop that collects a row `o`, and reads `x` from outside."""
    return f"""c = Constant <value = bool {{1}}> ()
        z = Loop <body = b (int64 i, bool d) => (bool f, {row} o) {{ f = Identity (d) {nodes} }}> (n, c)"""


def collected(nodes: str, opset: int = 19) -> ModelProto:
    return parsed(f"(int64 n, string[k] x) => (string[j, k] z) {{ {loop(nodes)} }}", opset)


def with_state(state: str, row: str, nodes: str, opset: int = 19) -> ModelProto:
    return parsed(
        f"""(int64 n, string[k] x) => (string[k] y, string[j, k] z) {{ c = Constant <value = bool {{1}}> ()
        y, z = Loop <body = b (int64 i, bool d, string[k] s) => (bool f, string[k] {state}, string[k] {row}) {{
            f = Identity (d) {nodes} }}> (n, c, x) }}""",
        opset,
    )


def within_a_branch() -> ModelProto:
    return parsed(
        f"""(int64 n, string[k] x) => (string[j, k] z) {{
        t = Cast <to = 9> (n) z = If (t) <
            then_branch = a () => (string[j, k] z) {{ {loop("o = Identity (x)")} }},
            else_branch = e () => (string[p, k] w) {{
                zero = Constant <value = int64[1] {{0}}> () u = Unsqueeze (x, zero) w = Slice (u, zero, zero) }}> }}"""
    )


def within_a_function() -> ModelProto:
    function = f"""<domain: "own", opset_import: ["": 19]> Rows (n, x) => (z) {{ {loop("o = Identity (x)")} }}"""
    return parsed("(int64 n, string[k] x) => (string[j, k] z) { z = own.Rows (n, x) }", functions=function)


#: Rows that are the strings given, and were emptied with 1.31 and 1.32.
SHARED = {
    "a value from outside": collected("o = Identity (x)"),
    "a value from outside, passed on twice": collected("u = Identity (x) o = Identity (u)"),
    "a Cast that is left out": collected("u = Cast <to = 8> (x) o = Identity (u)"),
    "a branch that is put in place": collected(
        """t = Constant <value = bool {1}> () o = If (t) <then_branch = a () => (string[k] p) { p = Identity (x) },
        else_branch = e () => (string[k] q) { q = Concat <axis = 0> (x) }>"""
    ),
    "a state": with_state("t", "o", "t = Identity (s) o = Identity (s)"),
    "a state before the step": with_state("s", "s", ""),
    "a state after the step": with_state("t", "t", "t = Identity (s)"),
    "opset 12": collected("o = Identity (x)", 12),
    "opset 8, without a Where": with_state("t", "o", "t = Identity (s) o = Identity (s)", 8),
    "in a branch": within_a_branch(),
    "in a function": within_a_function(),
}
#: Those that were right.
OWN = {
    "a Concat": collected("o = Concat <axis = 0> (x)"),
    "a Where": collected("t = Constant <value = bool {1}> () o = Where (t, x, x)"),
    "a Reshape": collected("s = Shape (x) o = Reshape (x, s)"),
}
FORMS = {**SHARED, **OWN}


@pytest.mark.parametrize("form", FORMS)
def test_every_row_is_the_strings_of_its_step(ort_cpu: type[omb.Preset], form: str) -> None:
    prepared = ort_cpu.prepare(FORMS[form])
    changed = "loop_strings" in {change.pass_name for change in prepared.adaptations}
    assert changed is (form in SHARED or ENDS)
    for n, words in ((3, ["a", "b" * 40]), (1, ["c", "d"]), (0, ["e", "f"]), (2, []), (4, ["g", "h", "i"])):
        *states, rows = prepared.run([np.array(n), np.array(words, object)])
        assert rows.shape in ((n, len(words)), (0, 0))
        assert rows.tolist() == [words] * n
        assert all(state.tolist() == words for state in states)


@pytest.mark.parametrize("form", ["a value from outside", "a state", "in a branch", "in a function"])
def test_the_execution_provider_leaves_them_to_the_cpu(openvino_ep: type[omb.Preset], form: str) -> None:
    with pytest.warns(omb.FallbackWarning, match="Loop"):
        prepared = openvino_ep.prepare(FORMS[form], fallback="full")
    for words in (["a", "b"], ["c", "d"]):
        assert prepared.run([np.array(3), np.array(words, object)])[-1].tolist() == [words] * 3


def test_two_scan_outputs_of_one_value(ort_cpu: type[omb.Preset]) -> None:
    made = parsed(
        """(int64 n, string[k] x) => (float[j] a, string[j, k] y, string[j, k] z) { c = Constant <value = bool {1}> ()
        a, y, z = Loop <body = b (int64 i, bool d) => (bool f, float h, string[k] t, string[k] t) {
            f = Identity (d) h = Cast <to = 1> (i) t = Concat <axis = 0> (x) }> (n, c) }"""
    )
    prepared = ort_cpu.prepare(made)
    for n in (2, 3):
        counted, *rows = prepared.run([np.array(n), np.array(["a", "b"], object)])
        assert counted.tolist() == list(range(n))
        assert [row.tolist() for row in rows] == [[["a", "b"]] * n] * 2


def test_the_weights_of_a_model_stay(ort_cpu: type[omb.Preset]) -> None:
    """Without optimizations, the first run emptied the model's own tensor."""
    made = parsed(
        """(int64 n) => (string[j, 2] z) <string[2] x = {"a", "b"}> { c = Constant <value = bool {1}> ()
        z = Loop <body = b (int64 i, bool d) => (bool f, string[2] o) { f = Identity (d) o = Identity (x) }> (n, c) }"""
    )
    prepared = ort_cpu.prepare(made, session_options={"graph_optimization_level": "ORT_DISABLE_ALL"})
    for n in (2, 3):
        assert prepared.run([np.array(n)])[0].tolist() == [["a", "b"]] * n


def test_loops_in_loops_and_rows_of_other_ranks(ort_cpu: type[omb.Preset]) -> None:
    inner = """o = Loop <body = h (int64 i2, bool d2) => (bool f2, string[k] o2) {
        f2 = Identity (d2) o2 = Identity (x) }> (n, c)"""
    made = parsed(f"(int64 n, string[k] x) => (string[j, l, k] z) {{ {loop(inner, 'string[l, k]')} }}")
    prepared = ort_cpu.prepare(made)
    for n, words in ((2, ["a", "b"]), (3, ["c"]), (2, [])):
        rows = prepared.run([np.array(n), np.array(words, object)])[0]
        assert rows.shape == (n, n, len(words))
        assert rows.tolist() == [[words] * n] * n
    scalar = parsed(
        f"""(int64 n, string x) => (string[j] z) {{ {loop("o = Identity (x)", "string")} }}""",
    )
    assert ort_cpu.prepare(scalar).run([np.array(3), np.array("word", object)])[0].tolist() == ["word"] * 3


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
def test_rows_of_numbers_are_left_alone(ort_cpu: type[omb.Preset], dtype: Any) -> None:
    name = onnx.TensorProto.DataType.Name(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))).lower()
    made = onnx.parser.parse_model(
        onnx.printer.to_text(FORMS["a state"]).replace("string", name),
    )
    prepared = ort_cpu.prepare(made)
    assert not prepared.adaptations
    assert prepared.run([np.array(3), np.ones(2, dtype)])[1].tolist() == [[1, 1]] * 3


BARE = """
import sys
import numpy as np
import onnx_multi_backend as omb
rows = omb.OrtCpuBackend.prepare(sys.argv[1], adapt=False).run([np.array(3), np.array(["a", "b"], object)])[-1]
sys.exit(rows.tolist() != [["a", "b"]] * 3)
"""


@pytest.mark.parametrize("form", ["a value from outside", "a state", "a branch that is put in place", *OWN])
def test_the_engine_still_gets_the_bare_form_wrong(ort_cpu: type[omb.Preset], form: str, tmp_path: Path) -> None:
    """Once this fails, a release has mended it: give the entry in defects.py the releases that it holds for."""
    onnx.save(FORMS[form], tmp_path / "model.onnx")
    command = [sys.executable, "-c", BARE, str(tmp_path / "model.onnx")]
    ended = subprocess.run(command, capture_output=True, check=False).returncode
    assert ended < 0 if ENDS else ended == (form in SHARED)
