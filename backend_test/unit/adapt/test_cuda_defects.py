# SPDX-License-Identifier: Apache-2.0
"""What the CUDA provider computes wrongly: told, and written so that it is right; on a GPU also run there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest
from onnx import ModelProto, TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import ORT_CPU, Picky, computed, expected
from backend_test.unit.adapt.test_defective import single
from onnx_multi_backend.adapt import adapt
from onnx_multi_backend.adapt.defective import defective_nodes
from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.lowering import lower
from onnx_multi_backend.adapt.site import Rule, Site
from onnx_multi_backend.engines.ort import engine
from onnx_multi_backend.engines.ort.cuda import defects as cuda_defects
from onnx_multi_backend.engines.ort.cuda.records import BUILT_IN
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.loading import load

INF = np.inf
ROWS = np.float32([[1, 2, 3], [-INF, -INF, -INF], [INF, INF, INF], [-INF, 5, -INF], [INF, 4, INF], [-0.0, 0.0, -3]])


class Cuda(Picky):
    """ONNX Runtime's CPU provider with the table of CUDA's: what rules write for that is run here."""

    def __init__(self) -> None:
        super().__init__((), target=ORT_CPU)

    @property
    def own_rules(self) -> tuple[Rule, ...]:
        return BUILT_IN.rules

    def find_defect(self, site: Site, *, written: bool = False) -> Defect | None:
        return cuda_defects.CUDA.find(site)


def parsed(opset: int, graph: str) -> ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> g {graph}')


def top_k(opset: int, kind: str = "float", **attributes: int) -> ModelProto:
    given = {"axis": -1, **attributes, **({"k": 2} if opset < 10 else {})}
    attributes_text = ", ".join(f"{name} = {value}" for name, value in given.items())
    k, constant = ("", "") if opset < 10 else (", k", "<int64[1] k = {2}>")
    return parsed(
        opset,
        f"({kind}[r, c] x) => ({kind}[a, b] y, int64[a, b] i) {constant} {{ y, i = TopK <{attributes_text}> (x{k}) }}",
    )


NUMBERS: dict[str, Any] = {
    "float": np.float32,
    "double": np.float64,
    "int32": np.int32,
    "int64": np.int64,
    "int8": np.int8,
}


def quantized(axis: int) -> ModelProto:
    return parsed(
        21,
        f"""(float[4, 4] x) => (int8[4, 4] q, float[4, 4] y)
        <float[{"4, 2" if axis else "2, 4"}] s = {{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}},
        int8[{"4, 2" if axis else "2, 4"}] z = {{1, 2, 3, 4, 5, 6, 7, -8}}> {{
        q = QuantizeLinear <axis = {axis}, block_size = 2> (x, s, z)
        y = DequantizeLinear <axis = {axis}, block_size = 2> (q, s, z) }}""",
    )


THREE = "(float[3, 1, 5] a, float[1, 4, 5] b, float[3, 4, 5] c) => (float[3, 4, 5] y)"
ADDED = [np.linspace(-9, 9, np.prod(s), dtype=np.float32).reshape(s) for s in ((3, 1, 5), (1, 4, 5), (3, 4, 5))]
WEIGHTS = np.random.default_rng(5)


def layer(operator: str, inputs: str, read: str, **attributes: Any) -> ModelProto:
    """A recurrent layer of 3 features and 2 hidden numbers, whose weights are constants."""
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[operator]
    both = 2 if attributes.get("direction") == "bidirectional" else 1
    drawn = [WEIGHTS.uniform(-1, 1, shape) for shape in ((both, 2 * gates, 3), (both, 2 * gates, 2))]
    w, r = (", ".join(f"{number:.6f}" for number in numbers.ravel()) for numbers in drawn)
    text = ", ".join(f'{key} = "{v}"' if isinstance(v, str) else f"{key} = {v}" for key, v in attributes.items())
    return parsed(
        14,
        f"""(float[s, b, 3] x, {inputs}) => (float[s, d, b, 2] y, float[d, b, 2] h)
        <float[{both}, {2 * gates}, 3] w = {{{w}}}, float[{both}, {2 * gates}, 2] r = {{{r}}}> {{
        y, h = {operator} <hidden_size = 2{", " if text else ""}{text}> (x, w, r, {read}) }}""",
    )


STEPS = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 2, 3)
#: A model, what it is given, and the beginning of what is told.
FORMS: dict[str, tuple[ModelProto, list[Any], str]] = {
    **{
        f"{name} of infinities, opset {opset}": (
            parsed(
                opset,
                f"(float[r, c] x) => (float[r] y) {{ y = {name} <axes = [1], keepdims = 0> (x) }}"
                if opset < 18
                else f"(float[r, c] x) => (float[r] y) <int64[1] a = {{1}}> {{ y = {name} <keepdims = 0> (x, a) }}",
            ),
            [ROWS],
            "the extreme of infinities alone",
        )
        for name in ("ReduceMax", "ReduceMin")
        for opset in (13, 20)
    },
    **{
        f"TopK, opset {opset}, {attributes}": (top_k(opset, **attributes), [ROWS], "an infinity that comes last")
        for opset, attributes in ((9, {}), (10, {}), (11, {}), (24, {}), (24, {"largest": 0}))
    },
    "TopK of float16": (top_k(24, "float16"), [ROWS.astype(np.float16)], "an infinity that comes last"),
    "blocks of int8 along the last axis": (
        quantized(1),
        [np.linspace(-9, 9, 16, dtype=np.float32).reshape(4, 4)],
        "blocks of other types",
    ),
    "blocks of int8 along the first axis": (
        quantized(0),
        [np.linspace(-9, 9, 16, dtype=np.float32).reshape(4, 4)],
        "blocks of other types",
    ),
    **{
        f"{name} of no axes": (
            single(name, [(2, 3)], opset=18, noop_with_empty_axes=1),
            [np.float32([[1, -2, 3], [-4, 5, -6]])],
            "where no axis is reduced",
        )
        for name in ("ReduceL1", "ReduceL2", "ReduceSumSquare")
    },
    **{
        f"{name} of infinities, opset {opset}": (
            parsed(opset, f"(float[r, c] x) => (int64[a, b] y) {{ y = {name} <axis = 0> (x) }}"),
            [ROWS.T.copy()],
            "of infinities alone, the index",
        )
        for name in ("ArgMax", "ArgMin")
        for opset in (9, 13)
    },
    "Sign of NaN": (
        parsed(13, "(float[r, c] x) => (float[r, c] y) { y = Sign (x) }"),
        [np.float32([[np.nan, 1, -2], [0, -INF, INF]])],
        "the sign of NaN is 0",
    ),
    "linear Resize of int8": (
        parsed(
            13,
            """(int8[1, 1, 2, 2] x) => (int8[a, b, c, d] y) <float[4] s = {1, 1, 2, 2}> {
            y = Resize <mode = "linear", coordinate_transformation_mode = "asymmetric"> (x, , s) }""",
        ),
        [np.int8([[[[0, 9], [-8, 4]]]])],
        "integers are interpolated",
    ),
    "SoftmaxCrossEntropyLoss of float64": (
        parsed(
            13,
            "(double[r, c] x, int64[r] t) => (double l) { l = SoftmaxCrossEntropyLoss (x, t) }",
        ),
        [np.linspace(-3, 3, 6).reshape(2, 3), np.int64([0, 2])],
        "float64 is summed in float32",
    ),
    **{
        f"{name} of nothing": (
            parsed(18, f"(float[r, c] x) => (float[r, 1] y) <int64[1] a = {{1}}> {{ y = {name} (x, a) }}"),
            [np.zeros((2, 0), np.float32)],
            "the logarithm of an empty sum",
        )
        for name in ("ReduceLogSum", "ReduceLogSumExp")
    },
    "Softmax of float64": (
        parsed(13, "(double[r, c] x) => (double[r, c] y) { y = Softmax (x) }"),
        [np.linspace(-3, 3, 6).reshape(2, 3)],
        "float64 is summed in float32",
    ),
    "LogSoftmax of float64": (
        parsed(13, "(double[r, c] x) => (double[r, c] y) { y = LogSoftmax <axis = 0> (x) }"),
        [np.linspace(-3, 3, 6).reshape(2, 3)],
        "float64 is summed in float32",
    ),
    "the remainder of floats": (
        parsed(20, "(float[r] x, float[r] d) => (float[r] y) { y = Mod (x, d) }"),
        [np.float32([7.5, -7.5, 3]), np.float32([2, 2, -2])],
        "fmod=0 of floating-point types",
    ),
    **{
        f"{name} of three shapes, {order}": (
            parsed(13, f"{THREE} {{ y = {name} ({order}) }}"),
            ADDED,
            "of three or more tensors",
        )
        for name in ("Max", "Min", "Sum")
        for order in ("a, b, c", "b, c, a")
    },
    "Sum of three open shapes": (
        parsed(8, "(float[n, k, l] a, float[p, q, o] b, float[r, s, j] c) => (float[t, u, v] y) { y = Sum (a, b, c) }"),
        ADDED,
        "of three or more tensors",
    ),
    **{
        f"{name} with a bias of the run": (
            layer(name, f"float[1, {4 * gates}] b", "b", **attributes),
            [STEPS, np.linspace(-1, 2, 4 * gates, dtype=np.float32).reshape(1, -1)],
            "beside weights that are known",
        )
        for name, gates, attributes in (("RNN", 1, {}), ("GRU", 3, {"linear_before_reset": 1}), ("LSTM", 4, {}))
    },
    **{
        f"a power of {kind} by {given}": (
            parsed(15, f"({kind}[r] x, {given}[r] e) => ({kind}[r] y) {{ y = Pow (x, e) }}"),
            [NUMBERS[kind]([3, -3, 2, 7, 1]), NUMBERS[given]([1, 1, 10, 0, 3])],
            "a power of an integer",
        )
        for kind in ("int32", "int64")
        for given in ("int32", "int64", "float", "double")
    },
    "a power of int64 by 1": (
        parsed(15, "(int64[r] x) => (int64[r] y) <int64 e = {1}> { y = Pow (x, e) }"),
        [np.int64([3, -3, 2])],
        "a power of an integer",
    ),
    **{
        f"{name} of int64": (
            parsed(20, f"(int64[r, c] x) => (int64[r, d] y) <int64[1] a = {{1}}> {{ y = {name} (x, a) }}"),
            [np.int64([[2**53 + 1, 2**53 - 1, -5], [-(2**60) - 1, -(2**60) - 3, -(2**61) - 7]])],
            "int64 is compared in float64",
        )
        for name in ("ReduceMax", "ReduceMin")
    },
    **{
        f"InstanceNormalization of channels of one element, {sizes}": (
            parsed(
                opset,
                f"(float[{sizes}] x, float[2] s, float[2] b) => (float[p, q, r, t] y) {{ y = InstanceNormalization (x, s, b) }}",
            ),
            [np.float32([[[[3]], [[-4]]], [[[5]], [[0]]]]), np.float32([2, 3]), np.float32([0.5, -1])],
            "of channels of one element",
        )
        for sizes, opset in (("n, 2, h, w", 9), ("2, 2, 1, 1", 22))
    },
    **{
        f"Gelu of a number, {approximate}": (
            parsed(20, f'(float x) => (float y) {{ y = Gelu <approximate = "{approximate}"> (x) }}'),
            [np.float32(1.5)],
            "a tensor without axes",
        )
        for approximate in ("none", "tanh")
    },
    **{
        f"ScatterND of {kind}, {reduction}": (
            parsed(
                18,
                f"""({kind}[a, b, c] x, int64[n, {places}] i, {kind}[{"n, c" if places == 2 else "n, b, c"}] u) => ({kind}[a, b, c] y) {{
                y = ScatterND <reduction = "{reduction}"> (x, i, u) }}""",
            ),
            [
                np.arange(12).reshape(2, 3, 2).astype(NUMBERS[kind]),
                np.int64([[1, -1], [1, 2], [0, 0]])[:, :places].copy(),
                (np.arange(3 * 2 if places == 2 else 3 * 6) % 5 + 2)
                .reshape((3, 2) if places == 2 else (3, 3, 2))
                .astype(NUMBERS[kind]),
            ],
            "a reduction of other types",
        )
        for kind, reduction, places in (
            *(("int64", reduction, 2) for reduction in ("add", "mul", "max", "min")),
            *(("double", "add", 1), ("int32", "max", 1), ("int8", "add", 2)),
        )
    },
    "the result of Attention's softmax": (
        single("Attention", [(1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)], opset=23, outputs=4, qk_matmul_output_mode=3),
        [np.linspace(-1, 1, 24, dtype=np.float32).reshape(1, 2, 3, 4)] * 3,
        "another qk_matmul_output",
    ),
}


def fed(model: ModelProto, given: list[Any]) -> list[Any]:
    """What the model's inputs get; the forms with constants have none."""
    return given[: len(model.graph.input)]


def held_to(model: ModelProto, given: list[Any], got: list[Any]) -> None:
    for mine, wanted in zip(got, expected(model, *given), strict=True):
        if wanted is None or (mine.ndim and not mine.size and not np.asarray(wanted).size):
            continue
        if mine.dtype.kind in "iu":
            np.testing.assert_array_equal(mine, wanted)
            continue
        tolerance = 1e-12 if mine.dtype == np.float64 else 1e-5
        np.testing.assert_allclose(
            mine.astype(np.float64), np.asarray(wanted).astype(np.float64), rtol=tolerance, atol=tolerance
        )


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_told_and_rewritten(form: str, ort_cpu: type[omb.Preset]) -> None:
    model, given, words = FORMS[form]
    with_table = Cuda()
    found = defective_nodes(model, with_table, cuda_defects.may_have_defect)
    assert [d.defect.words for d in found if d.defect.words.startswith(words)]
    lowered = next(lower(adapt(model, with_table.limits), with_table))
    assert not defective_nodes(lowered.proto, with_table, cuda_defects.may_have_defect)
    held_to(model, fed(model, given), computed(lowered.proto, *fed(model, given)))


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_right_on_a_gpu(form: str, cuda: type[omb.Preset]) -> None:
    model, given, _ = FORMS[form]
    held_to(model, fed(model, given), list(cuda.prepare(model).run(fed(model, given))))


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_wrong_on_a_gpu_as_it_stands(form: str, cuda: type[omb.Preset]) -> None:
    model, given, _ = FORMS[form]
    with pytest.raises((AssertionError, omb.OnnxMultiBackendError)):
        held_to(model, fed(model, given), list(cuda.prepare(model, adapt=False).run(fed(model, given))))


def test_the_page_names_every_operator_of_the_table() -> None:
    rows = (Path(__file__).parents[3] / "docs" / "cuda.md").read_text(encoding="utf-8").splitlines()
    named = {name for row in rows if row.startswith("| ") for name in row.split("|")[1].strip().split(", ")}
    assert cuda_defects.CUDA.integer_operators is not None
    assert {*cuda_defects.DEFECTS, *cuda_defects.CUDA.integer_operators} <= named


STRINGS = {
    "If": """(bool c, string[2] x, float[2] a) => (string[2] y, float[2] z) { z = Relu (a)
        y = If (c) <then_branch = t () => (string[2] p) { p = Identity (x) }, else_branch = e () => (string[2] q) { q = Identity (x) }> }""",
    "Loop": """(string[2] x, float[2] a) => (string[2] y, float[2] z) <int64 n = {2}, bool go = {1}> { z = Relu (a)
        y = Loop (n, go, x) <body = b (int64 i, bool c, string[2] v) => (bool d, string[2] w) {
            d = Identity (c) w = Identity (v) }> }""",
}


@pytest.mark.parametrize("operator", STRINGS)
def test_strings_that_would_end_the_process_are_refused(operator: str, cuda: type[omb.Preset]) -> None:
    with pytest.raises(omb.UnsupportedModelError, match="strings that it makes end the process"):
        cuda.prepare(parsed(18, STRINGS[operator]))


@pytest.mark.parametrize("operator", STRINGS)
def test_strings_are_told_without_a_gpu(operator: str) -> None:
    found = defective_nodes(parsed(18, STRINGS[operator]), Cuda(), cuda_defects.may_have_defect)
    assert [(d.node.op_type, d.defect.deadly) for d in found] == [(operator, True)]


@pytest.mark.parametrize(
    ("x", "told"),
    [
        ("float[1, 1, 5, 5] x", False),
        ("float[n, c, h, w] x", False),
        ("float[] x", True),  # the provider cannot be asked
        ("", True),  # ONNX Runtime computes constants on the CPU
    ],
)
def test_what_the_cpu_provider_may_compute_is_held_to_its_table(
    x: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "answer", lambda *given: None)  # CUDA takes every node
    _, settings = omb.OrtCudaBackend._settle("CUDA", {})
    target = omb.OrtCudaBackend.make_target(settings, Device("CUDA:0"), load(models.relu()))
    constant = "" if x else f"<float[1, 1, 5, 5] x = {{{', '.join(map(str, range(25)))}}}>"
    pool = 'LpPool <kernel_shape = [2, 2], dilations = [2, 2], auto_pad = "SAME_UPPER"> (x)'
    model = parsed(18, f"({x}) => (float[a, b, c, d] y) {constant} {{ y = {pool} }}")
    if x == "float[] x":
        model.graph.input[0].type.tensor_type.ClearField("shape")
    found = defective_nodes(model, target, target.may_have_defect)
    assert [d.defect.words for d in found] == (
        ["the padding that auto_pad stands for is computed as if there were no dilations"] if told else []
    )


def test_kernels_of_its_own_need_no_rewriting_for_the_cpus(cuda: type[omb.Preset]) -> None:
    attention = single("Attention", [(1, 2, 3, 4)] * 3, opset=23)
    attention.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT
    rep = cuda.prepare(attention)
    assert [node.op_type for node in rep.placement()] == ["Attention"]
    numbers = models.one_node(
        "Max",
        [models.tensor(name, (2,), TensorProto.INT64) for name in "ab"],
        [models.tensor("y", (2,), TensorProto.INT64)],
    )
    assert cuda.prepare(numbers).run([np.int64([2**62, -1]), np.int64([2**62 + 2**31, -2])])[0].tolist() == [
        2**62 + 2**31,
        -1,
    ]
    assert not cuda.prepare(numbers).adaptations
