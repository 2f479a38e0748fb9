# SPDX-License-Identifier: Apache-2.0
"""Each rule, on an engine that lacks the operator, against ONNX's reference evaluator on the original model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import TensorProto, helper, numpy_helper

from backend_test.unit import models
from backend_test.unit.adapt.forced import computed, expected, rewritten
from onnx_multi_backend.adapt.rules.version import convert_version
from onnx_multi_backend.adapt.site import Site

T = TensorProto
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
pytest.importorskip("onnxruntime")

quickly = settings(max_examples=25, deadline=None)


def code(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def single(op_type: str, inputs: dict[str, np.ndarray], outputs: dict[str, tuple[Any, Any]], *, opset: int, **kw: Any):
    made_in = [models.tensor(n, a.shape, code(a.dtype)) for n, a in inputs.items()]
    made_out = [models.tensor(n, shape, code(dtype)) for n, (dtype, shape) in outputs.items()]
    return models.one_node(op_type, made_in, made_out, opset=opset, ir_version=13, **kw)


@quickly
@given(
    dtype=st.sampled_from(INTEGERS[:-1]),  # the rule shifts most types in uint64
    direction=st.sampled_from(["LEFT", "RIGHT"]),
    data=st.data(),
)
def test_bit_shift(dtype: str, direction: str, data: st.DataObject) -> None:
    x = data.draw(hnp.arrays(dtype, (3, 4)))
    bits = np.dtype(dtype).itemsize * 8
    low = -2 if dtype.startswith("int") else 0
    y = data.draw(hnp.arrays(dtype, (4,), elements=st.integers(low, min(bits + 2, np.iinfo(dtype).max))))
    model = single("BitShift", {"x": x, "y": y}, {"z": (dtype, (3, 4))}, opset=28, direction=direction)
    new, changes = rewritten(model, "BitShift", forms=lambda site: site.elem_type(site.input(0)) != T.UINT64)
    assert [c.pass_name for c in changes] == ["bit_shift"]
    result = computed(new, x, y)[0]
    wide = [[_shift(int(a), int(b), bits, direction, dtype) for a, b in zip(row, y, strict=True)] for row in x]
    np.testing.assert_array_equal(result, np.array(wide, dtype))


@quickly
@given(data=st.data())
def test_bit_shift_of_uint64_by_quotients(data: st.DataObject) -> None:
    x = data.draw(hnp.arrays(np.uint64, (3, 4)))
    y = data.draw(hnp.arrays(np.uint64, (4,), elements=st.integers(0, 66)))
    model = single("BitShift", {"x": x, "y": y}, {"z": (np.uint64, (3, 4))}, opset=28, direction="RIGHT")
    new, changes = rewritten(model, "BitShift")
    assert [c.pass_name for c in changes] == ["bit_shift"]
    right = [[_shift(int(a), int(b), 64, "RIGHT", "uint64") for a, b in zip(row, y, strict=True)] for row in x]
    np.testing.assert_array_equal(computed(new, x, y)[0], np.array(right, np.uint64))


def _shift(a: int, b: int, bits: int, direction: str, dtype: str) -> int:
    if b < 0 or b >= bits:
        return -1 if direction == "RIGHT" and a < 0 else 0
    if direction == "RIGHT":
        return a >> b
    value = (a << b) % (1 << bits)
    return value - (1 << bits) if dtype.startswith("int") and value >= 1 << (bits - 1) else value


FLOATS = st.floats(width=32, allow_subnormal=False)


@quickly
@given(a=hnp.arrays(np.float32, (12,), elements=FLOATS), b=hnp.arrays(np.float32, (12,), elements=FLOATS))
def test_mod_of_floats_has_the_divisors_sign(a: np.ndarray, b: np.ndarray) -> None:
    model = single("Mod", {"a": a, "b": b}, {"c": (np.float32, (12,))}, opset=28, fmod=0)
    new, changes = rewritten(model, "Mod", forms=lambda site: not site.attribute("fmod", 0))
    assert [c.pass_name for c in changes] == ["floor_mod"]
    result = computed(new, a, b)[0]
    with np.errstate(all="ignore"):
        right = np.mod(a, b)
    np.testing.assert_allclose(result, right, rtol=1e-6)
    whole = ~np.isnan(right) & (right == 0)
    np.testing.assert_array_equal(np.signbit(result[whole]), np.signbit(b[whole]))


@quickly
@given(
    shape=hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4),
    exclusive=st.booleans(),
    reverse=st.booleans(),
    known=st.booleans(),
    data=st.data(),
)
def test_cum_prod(shape: tuple[int, ...], exclusive: bool, reverse: bool, known: bool, data: st.DataObject) -> None:
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    place = np.array(axis, np.int64)
    kw = {"exclusive": int(exclusive), "reverse": int(reverse)}
    model = single("CumProd", {"x": x, "axis": place}, {"y": (np.float32, shape)}, opset=26, **kw)
    right = expected(model, x, place)[0]
    inputs = [x, place]
    if known:
        model.graph.initializer.append(numpy_helper.from_array(place, "axis"))
        del model.graph.input[1]
        inputs = [x]
    new, changes = rewritten(model, "CumProd")
    assert [c.pass_name for c in changes] == ["cum_prod"]
    np.testing.assert_allclose(computed(new, *inputs)[0], right, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64, np.float16])
@pytest.mark.parametrize("numbers", [(1, 8, 2), (7, -3, -2), (2, 2, 1), (4, 1, 3), (0, 600, 1)])
def test_range_of_opset_27(limited: Callable[..., None], dtype: Any, numbers: tuple[int, int, int]) -> None:
    limited(opset=26)
    start, limit, delta = given = [np.array(n, dtype) for n in numbers]
    model = single("Range", {"a": start, "b": limit, "c": delta}, {"y": (dtype, [None])}, opset=27)
    new, changes = rewritten(model, "Range", forms=lambda site: site.opset >= 27)
    assert [c.pass_name for c in changes] == ["range_type"]
    assert "Loop" not in {n.op_type for n in new.graph.node}
    np.testing.assert_array_equal(computed(new, *given)[0], np.arange(*numbers).astype(dtype))


@quickly
@given(shape=hnp.array_shapes(min_dims=0, max_dims=3, max_side=3), data=st.data())
def test_unsqueeze_with_axes_known_only_at_run_time(shape: tuple[int, ...], data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 3))
    total = len(shape) + count
    places = data.draw(st.lists(st.integers(0, total - 1), min_size=count, max_size=count, unique=True))
    axes = np.array([p - total if data.draw(st.booleans()) else p for p in places], np.int64)
    x = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    right = np.expand_dims(x, tuple(axes.tolist()))
    model = single("Unsqueeze", {"x": x, "axes": axes}, {"y": (np.float32, [None] * total)}, opset=21)
    new, changes = rewritten(model, "Unsqueeze", forms=lambda site: site.constant(site.input(1)) is None)
    assert [c.pass_name for c in changes] == ["unsqueeze_axes"]
    np.testing.assert_array_equal(computed(new, x, axes)[0], right)


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [-2, 1])
@pytest.mark.parametrize("rank", [3, 4])
def test_tensor_scatter(mode: str, axis: int, rank: int) -> None:
    shape = [2, 6, 5, 3][:rank]
    place = axis % rank
    update_shape = [*shape[:place], 2, *shape[place + 1 :]]
    rng = np.random.default_rng(1)
    cache, update = rng.normal(size=shape).astype(np.float32), rng.normal(size=update_shape).astype(np.float32)
    starts = np.array([1, shape[place] - (1 if mode == "circular" else 2)], np.int64)
    inputs = {"c": cache, "u": update, "s": starts}
    model = single("TensorScatter", inputs, {"y": (np.float32, shape)}, opset=24, mode=mode, axis=axis)
    new, _ = rewritten(model, "TensorScatter")
    np.testing.assert_array_equal(computed(new, cache, update, starts)[0], expected(model, cache, update, starts)[0])


@pytest.mark.parametrize("op_type", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
def test_recurrent_layers_whose_batch_comes_first(op_type: str, direction: str) -> None:
    batch, steps, size, hidden, ways = 3, 4, 2, 5, 2 if direction == "bidirectional" else 1
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op_type]
    rng = np.random.default_rng(2)

    def draw(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32)

    arrays = {
        "x": draw(batch, steps, size),
        "w": draw(ways, gates * hidden, size),
        "r": draw(ways, gates * hidden, hidden),
        "b": draw(ways, 2 * gates * hidden),
        "h": draw(batch, ways, hidden),
    }
    outputs = {"y": (np.float32, [None] * 4), "yh": (np.float32, [None] * 3)}
    names = ["x", "w", "r", "b", "", "h"]
    if op_type == "LSTM":
        arrays["c"] = draw(batch, ways, hidden)
        names.append("c")
        outputs["yc"] = (np.float32, [None] * 3)
    model = single(op_type, arrays, outputs, opset=14, layout=1, hidden_size=hidden, direction=direction)
    del model.graph.node[0].input[:]
    model.graph.node[0].input.extend(names)
    new, changes = rewritten(model)
    assert [c.pass_name for c in changes] == ["recurrent_layout"]
    # The reference evaluator mixes up the axes of several directions, so the layer is turned round by hand.
    turned = type(model)()
    turned.CopyFrom(model)
    next(a for a in turned.graph.node[0].attribute if a.name == "layout").i = 0
    for value in turned.graph.input:
        dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
        if value.name in "xhc":
            value.CopyFrom(models.tensor(value.name, [dims[1], dims[0], *dims[2:]]))
    feeds = [a.swapaxes(0, 1) if n in "xhc" else a for n, a in arrays.items()]
    y, *states = computed(turned, *feeds)
    result = computed(new, *arrays.values())
    np.testing.assert_allclose(result[0], y.transpose(2, 0, 1, 3), rtol=1e-5)
    for one, other in zip(result[1:], states, strict=True):
        np.testing.assert_allclose(one, other.swapaxes(0, 1), rtol=1e-5)


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_a_slope_for_each_channel_of_an_old_opset(rank: int) -> None:
    x = np.random.default_rng(3).normal(size=[2, 3, 4, 5][:rank]).astype(np.float32)
    slope = np.float32([0.1, -2, 3])
    model = single("PRelu", {"x": x, "s": slope}, {"y": (np.float32, x.shape)}, opset=6)
    model.ir_version = 3
    new, _ = rewritten(model)
    by_channel = slope.reshape(-1, *[1] * (rank - 2))
    np.testing.assert_allclose(computed(new, x, slope)[0], np.where(x < 0, by_channel * x, x), rtol=1e-6)


@quickly
@given(x=hnp.arrays(np.uint64, (3, 7)), largest=st.booleans(), k=st.integers(1, 7))
def test_top_k_of_unsigned_numbers(x: np.ndarray, largest: bool, k: int) -> None:
    count = np.array([k], np.int64)
    outputs = {"v": (np.uint64, (3, k)), "i": (np.int64, (3, k))}
    model = single("TopK", {"x": x, "k": count}, outputs, opset=24, largest=int(largest))
    new, changes = rewritten(model)
    assert [c.pass_name for c in changes] == ["top_k_unsigned"]
    values, indices = computed(new, x, count)
    order = np.sort(x, axis=1)
    np.testing.assert_array_equal(values, order[:, ::-1][:, :k] if largest else order[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(x, indices, 1), values)


@pytest.mark.parametrize("group", [1, 2])
def test_zero_points_of_channels(group: int) -> None:
    rng = np.random.default_rng(4)
    x = rng.integers(0, 256, (2, 4, 6, 6)).astype(np.uint8)
    w = rng.integers(0, 256, (6, 4 // group, 3, 3)).astype(np.uint8)
    zx, zw = np.array(7, np.uint8), rng.integers(0, 256, 6).astype(np.uint8)
    inputs = {"x": x, "w": w, "zx": zx, "zw": zw}
    model = single("ConvInteger", inputs, {"y": (np.int32, [None] * 4)}, opset=10, group=group, pads=[1, 1, 1, 1])
    new, _ = rewritten(model)
    plain = single(
        "Conv",
        {"x": x.astype(np.float64), "w": w.astype(np.float64)},
        {"y": (np.float64, [None] * 4)},
        opset=11,
        group=group,
        pads=[1, 1, 1, 1],
    )
    right = expected(plain, x.astype(np.float64) - 7, w.astype(np.float64) - zw.reshape(-1, 1, 1, 1))[0]
    np.testing.assert_array_equal(computed(new, *inputs.values())[0], right.astype(np.int32))


@pytest.mark.parametrize("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Greater", "Equal", "Where"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "uint16", "uint32", "float16"])
def test_wider_types_give_the_same_numbers(op_type: str, dtype: str) -> None:
    if dtype == "uint32" and op_type in ("Max", "Min"):
        pytest.xfail("ONNX Runtime's vectorized Max and Min of int64 are wrong beyond int32: Max(2**31, 1) is 1")
    rng = np.random.default_rng(5)
    if dtype == "float16":
        a, b = (rng.normal(size=64).astype(dtype) for _ in range(2))
    else:
        info = np.iinfo(dtype)
        a, b = (rng.integers(info.min, info.max, 64, dtype=dtype, endpoint=True) for _ in range(2))
        b[b == 0] = 1
    inputs = {"a": a, "b": b}
    made = bool if op_type in ("Greater", "Equal") else dtype
    if op_type == "Where":
        inputs = {"c": a > b, **inputs}
    model = single(op_type, inputs, {"y": (made, (64,))}, opset=18)
    narrow = code(dtype)
    new, changes = rewritten(model, op_type, forms=lambda site: _uses(site, narrow))
    guarded = dtype == "float16" and op_type in ("Max", "Min", "Greater")  # against NaN, and inside in the wider type
    whole = dtype == "uint32" and op_type in (
        "Greater",
        "Equal",
        "Where",
    )  # which engines compare and choose as float32
    assert [c.pass_name for c in changes] == [
        "special_values" if guarded else "exact_integers" if whole else "widen_types"
    ]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(computed(new, *inputs.values())[0], expected(model, *inputs.values())[0], rtol=1e-3)


def _uses(site: Site, kind: int) -> bool:
    return any(site.elem_type(name) == kind for name in site.node.input)


@pytest.mark.parametrize("op_type", ["Adagrad", "Adam", "Momentum"])
@pytest.mark.parametrize("count", [0, 3])
def test_optimizers_of_several_tensors(op_type: str, count: int) -> None:
    states = 2 if op_type == "Adam" else 1
    rng = np.random.default_rng(6)
    tensors = [np.abs(rng.normal(size=n)).astype(np.float32) for _ in range(2 + states) for n in (2, 3)]
    feeds = {"r": np.float32(0.1), "t": np.int64(count), **{f"x{i}": a for i, a in enumerate(tensors)}}
    infos = [models.tensor(n, np.shape(a), code(np.asarray(a).dtype)) for n, a in feeds.items()]
    outputs = [models.tensor(f"y{i}", a.shape) for i, a in enumerate([*tensors[:2], *tensors[4:]])]
    attributes: dict[str, Any] = {"norm_coefficient": 0.01}
    if op_type == "Momentum":
        attributes |= {"alpha": 0.9, "beta": 0.8, "mode": "nesterov"}
    else:
        attributes |= {"epsilon": 1e-3}
    domain = "ai.onnx.preview.training"
    node = helper.make_node(op_type, list(feeds), [o.name for o in outputs], domain=domain, **attributes)
    model = models.model([node], infos, outputs, opsets={domain: 1})
    new, _ = rewritten(model, op_type)
    arrays = [np.asarray(a) for a in feeds.values()]
    for one, other in zip(computed(new, *arrays), expected(model, *arrays), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_cast_of_integers_to_floats_is_lifted() -> None:
    """With it a whole model of an older opset, where another node needs a newer one."""
    inputs, outputs = [models.tensor("i0", [None], TensorProto.INT64)], [models.tensor("o0", [None])]
    cast = models.one_node("Cast", inputs, outputs, opset=12, to=TensorProto.FLOAT)
    (lifted,) = convert_version(Site(cast, 18))
    assert [node.op_type for node in lifted.graph.node] == ["Cast"]
    assert {opset.version for opset in lifted.opset_import} == {18}
