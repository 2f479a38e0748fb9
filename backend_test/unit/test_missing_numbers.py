# SPDX-License-Identifier: Apache-2.0
"""Constants without elements where an operator asks for one number: some ended an engine's process, others came as a plain IndexError or ValueError."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit.adapt.test_deadly_constants import dies
from onnx_multi_backend.adapt.inferring.inference import infer
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models import checks
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.missing_numbers import missing_number

_BODY = "<body = b (int64 i, bool go, float[2] p) => (bool on, float[2] r) { on = Identity (go) r = Add (p, p) }>"
#: The opset, what is given, what is made, the type of n, a constant without elements, what reads it, and as what.
FORMS = {
    "CumProd": (26, "float[4] x", "float[4] y", "int32", "y = CumProd (x, n)", "axis"),
    "CumSum": (17, "float[4] x", "float[4] y", "int32", "y = CumSum (x, n)", "axis"),
    "Loop": (17, "float[2] x", "float[2] y", "int64", f"y = Loop {_BODY} (n, , x)", "M"),
    "OneHot": (17, "int64[3] x", "float[3, d] y", "int64", "y = OneHot (x, n, values)", "depth"),
    "Range": (27, "float16 x", "float16[k] y", "float16", "y = Range (x, x, n)", "delta"),
    "STFT": (17, "float[1, 16, 1] x", "float[a, b, c, d] y", "int64", "y = STFT (x, n, , four)", "frame_step"),
    "Trilu": (17, "float[3, 3] x", "float[3, 3] y", "int64", "y = Trilu (x, n)", "k"),
}
#: What ends the process of ONNX Runtime.
DEADLY = [
    "Loop",
    *(["CumSum"] if applies({"onnxruntime": "<1.31"}) else []),
    *(["OneHot"] if applies({"onnxruntime": "<1.32"}) else []),
]


def _model(form: str) -> ModelProto:
    opset, given, made, kind, nodes, _ = FORMS[form]
    return onnx.parser.parse_model(
        f"""<ir_version: 12, opset_import: ["": {opset}]> g ({given}) => ({made})
        <{kind}[0] n = {{}}, float[2] values = {{1, 3}}, int64 four = {{4}}> {{ {nodes} }}"""
    )


@pytest.mark.parametrize("form", FORMS)
def test_it_is_invalid(preset: type[omb.Preset], form: str) -> None:
    with pytest.raises(omb.InvalidModelError, match=f"asks for one number as its {FORMS[form][5]}, and 'n' has none"):
        preset.prepare(_model(form))


@pytest.mark.parametrize("form", DEADLY)
def test_the_engine_would_die(form: str, ort_cpu: type[omb.Preset], tmp_path: Path) -> None:
    assert dies("OrtCpu", _model(form), tmp_path), "the engine has been mended: its entry can go"


def test_it_is_found_behind_an_identity_and_in_a_branch_and_a_function() -> None:
    head = '<ir_version: 10, opset_import: ["": 17, "local": 1]>'
    for text in (
        "g (float[4] x) => (float[4] y) <int64[0] n = {}> { i = Identity (n) c = Cast <to = 6> (i) y = CumSum (x, c) }",
        """g (float[4] x, bool q) => (float[4] y) <int64[0] n = {}> {
        y = If (q) <then_branch = t () => (float[4] a) { a = CumSum (x, n) }, else_branch = e () => (float[4] b) { b = Neg (x) }> }""",
        """g (float[4] x) => (float[4] y) { y = local.f (x) }
        <domain: "local", opset_import: ["": 17]> f (a) => (b) { n = Constant <value = int64[0] {}> () b = CumSum (a, n) }""",
    ):
        assert missing_number(Contents(onnx.parser.parse_model(head + text))) is not None, text
    written = onnx.parser.parse_model(
        head + "g (float[4] x) => (float[4] y) { n = Constant <value_int = 0> () y = CumSum (x, n) }"
    )
    assert missing_number(Contents(written)) is None
    (value,) = written.graph.node[0].attribute
    value.CopyFrom(onnx.AttributeProto(name="value_ints", type=onnx.AttributeProto.INTS))
    assert missing_number(Contents(written)) is not None


def test_a_number_that_a_run_gives_in_its_stead_counts(ort_cpu: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[4] x, int64[k] n) => (float[4] y) <int64[0] n = {}> { y = CumSum (x, n) }"""
    )
    prepared = ort_cpu.prepare(model)
    assert prepared.run({"x": np.ones(4, np.float32), "n": np.array([0])})[0].tolist() == [1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
def test_other_lists_of_nothing_run(preset: type[omb.Preset]) -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[1, 2] x) => (float[a, b] y)
        <float[0] n = {}, float[2] s = {1, 2}, int64[1] k = {2}> { r = Resize (x, n, s) y, i = TopK (r, k) }"""
    )
    assert preset.prepare(model, fallback="full").run(np.float32([[1, 2]]))[0].tolist() == [[2, 2]]


def test_onnx_s_inference_may_fail_over_it() -> None:
    """It raises an IndexError, which came through."""
    model = _model("STFT")
    assert infer(model) == model
    with pytest.raises(IndexError):
        onnx.shape_inference.infer_shapes(model)
    assert isinstance(checks._fault(model, model, full=True), IndexError)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert isinstance(checks._fault(model, model, full=True), IndexError)
