# SPDX-License-Identifier: Apache-2.0
"""Each rule put to work on special values, on each engine: what it writes gives what ONNX says, on every processor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import OPENVINO, ORT_CPU, expected, rewritten
from backend_test.unit.special_values.made import Made, made
from backend_test.unit.special_values.values import FLOATS, pairs, rows, same, vector
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.rules import RULES
from onnx_multi_backend.adapt.rules.strided_points import strides_over_pads
from onnx_multi_backend.adapt.site import Site

X, ROWS = vector(FLOATS), rows()
FEW = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0])
A, B = pairs(FLOATS, FEW)
INDEX = np.arange(9, dtype=np.int64)


class Form(NamedTuple):
    """A node that a rule is put to work on.

    Attributes
    ----------
    rule : str
    op_type : str
    inputs : tuple of array or None
    attributes : mapping
    opset : int
    known : tuple of int
        Places of the inputs that are initializers.
    outputs : int
    zeros : bool
        Whether the sign of zero counts: where values are moved, or the operator's documentation tells it.
    domain : str
    where : callable
        Tells the nodes of the operator that are refused.
    fixed : bool
        Whether shapes are known.
    only : str
        The one preset that takes what the rule writes.
    """

    rule: str
    op_type: str
    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any] = {}
    opset: int = 24
    known: tuple[int, ...] = ()
    outputs: int = 1
    zeros: bool = False
    domain: str = ""
    where: Callable[[Site], bool] = lambda site: GUARDED not in site.node.name
    fixed: bool = False
    only: str = ""

    def model(self) -> ModelProto:
        names = [f"x{i}" if x is not None else "" for i, x in enumerate(self.inputs)]
        given = {n: np.asarray(x) for n, x in zip(names, self.inputs, strict=True) if x is not None}
        known = {names[i]: given[names[i]] for i in self.known}
        node = models.node(
            self.op_type, names, [f"y{i}" for i in range(self.outputs)], domain=self.domain, **self.attributes
        )
        infos = [
            models.tensor(n, x.shape if self.fixed else [None] * x.ndim, helper.np_dtype_to_tensor_dtype(x.dtype))
            for n, x in given.items()
            if n not in known
        ]
        outs = [helper.make_empty_tensor_value_info(name) for name in node.output]
        opsets = {"": self.opset} | ({self.domain: 1} if self.domain else {})
        return models.model([node], infos, outs, initializers=known, opsets=opsets, ir_version=11)

    def feeds(self) -> list[np.ndarray]:
        return [np.asarray(x) for i, x in enumerate(self.inputs) if x is not None and i not in self.known]


def of_type(kinds: set[int], place: int, site: Site) -> bool:
    """Whether an input is of one of these types."""
    return site.elem_type(site.input(place)) in kinds


def given_at_run_time(site: Site) -> bool:
    """Whether the axes are not known before."""
    return site.constant(site.input(1)) is None and not site.attribute("keepdims", 1)


def ceils(site: Site) -> bool:
    """Whether the last window may start beyond the image."""
    return bool(site.attribute("ceil_mode", 0))


def functions() -> Iterator[Form]:
    """Operators that ONNX defines as functions of others."""
    rule = "expand_function"
    for name in ("Elu", "Selu", "HardSigmoid", "HardSwish", "Mish", "Softsign"):
        yield Form(rule, name, (X,))
    yield Form(rule, "LeakyRelu", (X,), {"alpha": 0.1})
    yield Form(rule, "Swish", (X,), {"alpha": 0.5})
    # Without it, OpenVINO recognizes the body and takes its own Gelu again, which is NaN for an infinity with AVX-512.
    yield Form(rule, "Gelu", (X,), {"approximate": "tanh"})
    yield Form(rule, "LessOrEqual", (A, B))
    for name in ("ReduceL2", "ReduceSumSquare"):
        yield Form(rule, name, (ROWS, np.int64([1])), known=(1,))
    for name in ("ReduceL1", "ReduceLogSum"):
        yield Form(
            "reduce_functions", name, (np.abs(ROWS) if name == "ReduceLogSum" else ROWS, np.int64([1])), known=(1,)
        )
    weights = np.ones(9, np.float32)
    yield Form(rule, "LayerNormalization", (ROWS, weights, weights), opset=17)
    yield Form(rule, "RMSNormalization", (ROWS, weights), only="OrtCpu")  # its axes come from a Range: no OpenVINO
    yield Form(rule, "MeanVarianceNormalization", (ROWS[:, :, None, None],), {"axes": [1]})
    image, kernel = np.float32([[[1, 2, 3]]]), np.ones((len(X), 1, 2), np.float32)
    yield Form("constant_convolutions", "Conv", (image, kernel, X), known=(0, 1))


def guarded() -> Iterator[Form]:
    """Operators whose kernels lose NaN or infinities."""
    rule = "special_values"
    yield Form(rule, "Celu", (X,))
    yield Form(rule, "Celu", (X,), {"alpha": -0.5})
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        x, (a, b), table = vector(FLOATS, dtype), pairs(FLOATS, FEW, dtype), rows(dtype)
        yield Form(rule, "Erf", (x,))
        yield Form(rule, "Exp", (x,))
        yield Form(rule, "Relu", (x,))
        yield Form(rule, "ThresholdedRelu", (x,), {"alpha": 0.5})
        yield Form(rule, "Clip", (x, np.array(-1, dtype), np.array(6, dtype)), known=(1, 2))
        for name in ("Greater", "GreaterOrEqual", "Max", "Min"):
            yield Form(rule, name, (a, b))
        yield Form(rule, "Max", (a, b, b[::-1].copy()))
        for name in ("Softmax", "LogSoftmax"):
            yield Form(rule, name, (table,), {"axis": 1})
        for name in ("ReduceMax", "ReduceMin"):
            for keepdims in (0, 1):
                yield Form(rule, name, (table, np.int64([1])), {"keepdims": keepdims}, known=(1,))
            yield Form(rule, name, (table,))
    for name in ("ReduceMax", "ReduceMin"):  # there is no Where yet
        yield Form(rule, name, (rows(),), {"axes": [1]}, opset=8, only="Openvino")


def wider() -> Iterator[Form]:
    """Operators on types that a kernel lacks."""
    rule = "widen_types"
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x, (a, b) = vector(FLOATS, dtype), pairs(FLOATS, FEW, dtype)
        narrow = partial(of_type, {TensorProto.FLOAT16, TensorProto.BFLOAT16}, 0)
        for name in ("Abs", "Neg", "Floor", "Ceil", "Round", "Sqrt", "Reciprocal", "Sigmoid", "Tanh"):
            yield Form(rule, name, (x,), where=narrow)
        for name in ("Add", "Sub", "Mul", "Div", "Less", "Equal"):
            yield Form(rule, name, (a, b), where=narrow)
        third = partial(of_type, {TensorProto.FLOAT16, TensorProto.BFLOAT16}, 1)
        yield Form(rule, "Where", (np.arange(len(a)) % 3 == 0, a, b), where=third)
        yield Form(rule, "Concat", (x, x), {"axis": 0}, zeros=True, where=narrow)
        yield Form(rule, "Transpose", (a.reshape(len(FLOATS), -1),), {"perm": [1, 0]}, zeros=True, where=narrow)


def stable() -> Iterator[Form]:
    """Functions whose body in the schema overflows; ONNX's reference takes an infinite largest number for NaN."""
    for dtype in (np.float32, np.float16):
        yield Form("softplus", "Softplus", (vector(FLOATS, dtype),))
        table = rows(dtype)
        table = table[~np.isinf(table.max(axis=1))]
        for keepdims in (0, 1):
            sums = {"keepdims": keepdims}
            yield Form("reduce_functions", "ReduceLogSumExp", (table, np.int64([1])), sums, known=(1,))


def others() -> Iterator[Form]:
    """The special forms, each of its rule."""
    for dtype in (np.float32, np.float16):
        a, b = pairs(FLOATS, FEW, dtype)
        yield Form("floor_mod", "Mod", (a, b), {"fmod": 0}, opset=28, where=lambda s: not s.attribute("fmod"))
        yield Form("remainder", "Mod", (a, b), {"fmod": 1})
        yield Form("prelu", "PRelu", (a[a != 0], b[a != 0]))
        x = vector(FLOATS, dtype)
        yield Form("shrink", "Shrink", (x,), {"bias": 0.5, "lambd": 1.5})
        yield Form("zero_attributes", "HardSigmoid", (x,), {"beta": 0.0})
        yield Form("zero_attributes", "Selu", (x,), {"gamma": 0.0})
    for exponent in (-1, 0, 1, 2, 3):
        yield Form(
            "pow_exponent",
            "Pow",
            (X, np.full(len(X), exponent, np.int8)),
            where=partial(of_type, {TensorProto.INT8}, 1),
        )
    for attributes in ({}, {"exclusive": 1}, {"reverse": 1}):
        yield Form("cum_prod", "CumProd", (ROWS, np.array(1, np.int64)), attributes, opset=26)
    rate, count = np.float32(0.1), np.int64(3)
    training = {"domain": "ai.onnx.preview.training", "zeros": False}
    state = np.abs(np.nan_to_num(A, nan=1.0, posinf=2.0))
    usual = {"norm_coefficient": 0.01}
    yield Form("adagrad", "Adagrad", (rate, count, A, B, state), {**usual, "epsilon": 1e-3}, outputs=2, **training)
    step = (rate, count, A, B, state, state)
    yield Form("adam", "Adam", step, {**usual, "epsilon": 1e-3}, outputs=3, **training)
    nesterov = {**usual, "alpha": 0.9, "beta": 0.8, "mode": "nesterov"}
    yield Form("momentum", "Momentum", (rate, count, A, B, state), nesterov, outputs=2, **training)
    image = FLOATS[:20].reshape(1, 1, 4, 5)
    pads = np.int64([0, 0, 1, 2, 0, 0, 2, 1])
    yield Form("pad_wrap", "Pad", (image, pads), {"mode": "wrap"}, known=(1,), zeros=True)
    image_pads = np.int64([0, 0, 1, 0, 0, 0, 0, 2])
    yield Form("pad_value", "Pad", (image, image_pads, np.float32(-np.inf)), known=(1,))
    unpooled = np.arange(20, dtype=np.int64).reshape(1, 1, 4, 5) * 4
    window = {"kernel_shape": [2, 2], "strides": [2, 2]}
    yield Form("max_unpool", "MaxUnpool", (image, unpooled), window, zeros=True)
    cache, update = np.zeros((2, 1, 5, 3), np.float32), FLOATS[:12].reshape(2, 1, 2, 3)
    yield Form("tensor_scatter", "TensorScatter", (cache, update, np.int64([1, 2])), zeros=True)
    rows, twice = np.stack([FLOATS[:12], FLOATS[1:13]]), np.int64([[1], [0], [1]])
    for reduction in ("add", "mul"):
        reduced = (rows, twice, np.stack([FLOATS[2:14], FLOATS[:12], FLOATS[:12][::-1]]))
        yield Form("scatter_rows", "ScatterND", reduced, {"reduction": reduction}, opset=18, fixed=True)
    integers, far = np.uint8([[255, 250], [240, 3]]), np.float32(1.5e36)
    yield Form("dequantize_large", "DequantizeLinear", (integers, far, np.uint8(255)), known=(1, 2), opset=21)
    yield Form("unsqueeze_axes", "Unsqueeze", (X, np.int64([0, 2])), zeros=True, fixed=True)
    yield Form("special_values", "Sign", (X,))
    yield Form("tile", "Tile", (image, np.int64([1, 2, 1, 3])), zeros=True)
    yield Form("tile", "Tile", (image, np.int64([1, 2, 17, 3])), known=(1,), zeros=True)
    points, padded = np.float32([1, -2]).reshape(1, 2, 1, 1), {"pads": [1, 0, 0, 2], "strides": [2, 1]}
    yield Form(
        "strided_points",
        "Conv",
        (np.stack([FLOATS[:12], FLOATS[1:13]]).reshape(1, 2, 4, 3), points),
        padded,
        known=(1,),
        where=strides_over_pads,
    )
    yield Form("reduce_axes", "ReduceSum", (ROWS, np.int64([1])), {"keepdims": 0}, where=given_at_run_time, fixed=True)
    matrices = np.float32([[[np.nan, 1], [2, 3]], [[1, 2], [3, 4]], [[0, -0.0], [0, 1]], [[1, 2], [3, np.nan]]])
    yield Form("det", "Det", (matrices,), fixed=True)
    numbers = np.where(np.isnan(FLOATS[:16]), np.float32(1), FLOATS[:16]).reshape(1, 1, 4, 4)
    beyond = {"kernel_shape": [1, 1], "strides": [2, 2], "ceil_mode": 1}
    yield Form("pool_ceil", "MaxPool", (numbers,), beyond, opset=22, where=ceils, zeros=True, fixed=True)
    started = {"where": lambda s: ceils(s) and GUARDED not in s.node.name, "zeros": True}
    yield Form("pool_windows", "MaxPool", (numbers,), beyond, opset=22, **started)
    products = (np.ones((2, 3), np.float32), np.float32([[1], [2], [-3]]), FLOATS[:2, None])
    yield Form("gemm_without_c", "Gemm", products, {"beta": 0.0}, where=lambda s: not s.attribute("beta", 1.0))
    channels = np.float32([[1, 2, np.nan, 3, 4, 5], [1, 2, 3, 4, 5, np.nan], *np.ones((4, 6))])
    yield Form("lrn", "LRN", (channels[:, :, None, None],), {"size": 2, "alpha": 0.5}, opset=13)
    image, scale, bias = (
        np.float32([[[1, 2], [3, 5]] * 2] * 2),
        np.float32([np.inf, -np.inf, np.nan, 2]),
        np.ones(4, np.float32),
    )
    yield Form("scaled_apart", "InstanceNormalization", (image, scale, bias))
    yield Form("scaled_apart", "BatchNormalization", (image, scale, bias, bias, bias))
    for name in ("Softmax", "LogSoftmax"):
        yield Form("softmax_rows", name, (ROWS,), {"axis": 1}, opset=11)
    volume, places = FLOATS[:8].reshape(1, 1, 2, 2, 2), np.random.default_rng(1).uniform(-1, 1, (1, 2, 3, 2, 3))
    sampled = (volume, places.astype(np.float32))
    yield Form("grid_sample", "GridSample", sampled, {"mode": "nearest"}, opset=22, fixed=True)
    yield Form("lp_normalization", "LpNormalization", (ROWS,), {"axis": 1, "p": 2})
    # ONNX's reference adds up the numbers, not their magnitudes.
    yield Form("lp_normalization", "LpNormalization", (np.abs(ROWS),), {"axis": 1, "p": 1})
    image = np.random.default_rng(2).normal(size=(1, 1, 4, 4)).astype(np.float32)  # a corner of no weight may be NaN
    regions = (np.float32([[0, 0, 3, 3], [1, 0, 2, 2]]), np.int64([0, 0]))
    samples = {"where": lambda s: s.attribute("sampling_ratio") is None, "fixed": True}
    yield Form("roi_samples", "RoiAlign", (image, *regions), {}, opset=16, **samples)
    axis = {"where": lambda s: s.attribute("axis", 1) != 1, "fixed": True}
    yield Form("fourier", "DFT", (FLOATS[:8].reshape(4, 1, 2),), {"axis": -3}, opset=19, **axis)
    yield Form("range_type", "Range", tuple(np.array(v, np.float16) for v in (1, 9, 2)), opset=27)


FORMS = [*functions(), *guarded(), *wider(), *stable(), *others()]

#: ONNX's reference spreads infinities over a whole row, knows no lengths of sequences, and casts NaN to any integer:
#: `adapt.test_resize` and `adapt.test_second_runs` say what comes out. Those of other domains are tried in `adapt.test_ml_rules` and
#: `adapt.test_contrib_rules`.
TRIED_ELSEWHERE = {
    "array_feature_extractor",
    "binarizer",
    "feature_vectorizer",
    "imputer",
    "linear_classifier",
    "linear_regressor",
    "normalizer",
    "one_hot_encoder",
    "quick_gelu",
    "scaler",
    "skip_layer_normalization",
    "tree_ensemble_classifier",
    "tree_ensemble_regressor",
    "channel_means",
    "attention_scale",
    "contrib_pad",
    "dynamic_quantize_matmul",
    "matmul_integer_to_float",
    "matmul_of_bits",
    "qlinear_where",
    "rotary_embedding",
    "column_constants",
    "depth_and_space",
    "empty_products",
    "fused_conv",
    "fused_gemm",
    "resize",
    "resize_axes",
    "resize_crops",
    "layer_scales",
    "recurrent_lengths",
    "round_mode",
    "quantize",
    "exact_integers",
    "named_type",
    "narrow_integers",
    "quantized_products",
}

#: Rules whose nodes compute with integers, text, sequences or control flow alone.
NO_FLOATS = set(
    """
    attention_mask bit_cast bit_shift compress_nothing conv_integer_zero_points conv_transpose_output conv_transpose_pads conv_turned
    convert_version coupled_gates dequantize_blocks dequantize_wide expand_to_nothing gather_nothing gather_strings integer_powers integer_products integer_reduce_prod loop_condition loop_of_no_steps loop_rows
    if_condition label_encoder loop_states loop_strings lower_bound matmul_integer_vectors no_axes non_max_suppression non_zero one_hot_of_nothing optional_get_element
    optional_has_element pad_axes pad_crops pad_strings pool_indices pool_order pool_pads pool_same range_end recurrent_directions recurrent_layout
    run_time_scales scalar_scales scan_captures scan_slices scan_steps sequence_positions
    slice_axes split_sizes string_locale top_k_unsigned transpose_nothing unique_axis unique_order
    unread_saturate
    """.split()
)


def test_every_rule_that_computes_with_floats_is_tried() -> None:
    tried = {form.rule for form in FORMS}
    assert tried <= {rule.__name__ for rule in RULES}
    assert {rule.__name__ for rule in RULES} == tried | NO_FLOATS | TRIED_ELSEWHERE


def described(form: Form) -> str:
    kinds = "-".join(np.asarray(x).dtype.name for x in form.inputs[:2] if x is not None)
    return f"{form.rule}-{form.op_type}-{kinds}-{','.join(map(str, form.attributes.values()))}"


TARGETS = {"OrtCpu": ORT_CPU, "Openvino": OPENVINO}


def make(form: Form, engine: str) -> Made:
    """Put the form's rule to work for an engine."""
    new, changes = rewritten(form.model(), form.op_type, forms=form.where, target=TARGETS[engine])
    return Made(new.SerializeToString(), tuple(c.pass_name for c in changes))


@pytest.mark.parametrize("number", range(len(FORMS)), ids=lambda number: described(FORMS[number]))
def test_special_values(engine: type[omb.Preset], number: int) -> None:
    form = FORMS[number]
    if form.only not in ("", engine.name):
        pytest.skip(f"{engine.name} does not take what the rule writes")
    model = form.model()
    new = made(engine.name, number) or make(form, engine.name)
    assert form.rule in new.rules
    prepared = engine.prepare(new.model)
    # What crosses the boundary in another type was adapted before the rule was put to work.
    feeds = [x.astype(i.dtype) for x, i in zip(form.feeds(), prepared.get_inputs(), strict=True)]
    got, right = prepared.run(feeds), expected(model, *form.feeds())
    rtol = 2e-2 if any(np.asarray(x).dtype.itemsize == 2 for x in form.inputs if x is not None) else 1e-3
    for one, other in zip(got, right, strict=True):
        assert one.shape == other.shape
        agree = same(one, np.asarray(other), rtol=rtol, zeros=form.zeros)
        shown = [x for x in form.feeds() if x.shape == one.shape]
        assert agree.all(), [
            (*(x[i].item() for x in shown), one[i].item(), other[i].item())
            for i in zip(*np.nonzero(~agree), strict=True)
        ][:9]
