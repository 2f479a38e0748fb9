# SPDX-License-Identifier: Apache-2.0
"""Resize written axis by axis: the rule on ONNX Runtime, and what OpenVINO makes of it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.adapt.forced import computed, rewritten
from backend_test.unit.adapt.resizing import resized

pytest.importorskip("onnxruntime")

COORDINATES = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"),
    *("align_corners", "asymmetric", "tf_crop_and_resize"),
)
#: Numbers whose places are exact in float32, so that exact fractions round to the same side.
SCALES = (0.5, 0.625, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0)


class Case(NamedTuple):
    model: ModelProto
    feeds: list[np.ndarray]
    right: np.ndarray
    x: np.ndarray


@st.composite
def cases(draw: Any) -> Case:
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    rank = len(shape)
    axes = draw(st.none() | st.permutations(range(rank)).map(lambda p: p[: max(1, rank - 1)]))
    used = list(axes) if axes is not None else list(range(rank))
    attributes: dict[str, Any] = {
        "mode": draw(st.sampled_from(["nearest", "linear", "cubic"])),
        "coordinate_transformation_mode": draw(st.sampled_from(COORDINATES)),
    }
    if axes is not None:
        attributes["axes"] = [a - rank if draw(st.booleans()) else a for a in axes]
    if attributes["mode"] == "nearest":
        attributes["nearest_mode"] = draw(st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]))
    else:
        attributes["antialias"] = draw(st.integers(0, 1))
    if attributes["mode"] == "cubic":
        attributes["exclude_outside"] = draw(st.integers(0, 1))
        attributes["cubic_coeff_a"] = draw(st.sampled_from([-0.5, -0.75]))
    given_in: dict[str, np.ndarray] = {}
    crops = attributes["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if crops:
        corners = draw(
            st.lists(st.sampled_from([-0.25, 0.0, 0.125, 0.25, 0.5]), min_size=len(used), max_size=len(used))
        )
        ends = draw(st.lists(st.sampled_from([0.5, 0.75, 1.0, 1.25]), min_size=len(used), max_size=len(used)))
        given_in["roi"] = np.array(corners + ends, np.float32)
        attributes["extrapolation_value"] = draw(st.sampled_from([0.0, 7.0, -3.0]))
    if crops or draw(st.booleans()):
        given_in["sizes"] = np.array([draw(st.integers(1, 7)) for _ in used], np.int64)
        attributes["keep_aspect_ratio_policy"] = draw(st.sampled_from(["stretch", "not_larger", "not_smaller"]))
    else:
        given_in["scales"] = np.array([draw(st.sampled_from(SCALES)) for _ in used], np.float32)
        assume(all(math.floor(s * shape[a]) > 0 for s, a in zip(given_in["scales"], used, strict=True)))
    dtype = draw(st.sampled_from([np.float32, np.float16, np.uint8, np.int16]))
    # Even numbers, so that sums of a few products are seldom halfway between two integers.
    x = (np.random.default_rng(draw(st.integers(0, 9))).integers(0, 100, shape) * 2).astype(dtype)
    model, feeds = _model(x, given_in, attributes, known=draw(st.booleans()), dynamic=draw(st.booleans()))
    return Case(model, feeds, _right(x, given_in, attributes), x)


def _model(
    x: np.ndarray, given_in: dict[str, np.ndarray], attributes: dict[str, Any], *, known: bool, dynamic: bool = False
) -> tuple[ModelProto, list[np.ndarray]]:
    names = ["x", *(n if n in given_in else "" for n in ("roi", "scales", "sizes"))]
    while not names[-1]:
        names.pop()
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    infos = [models.tensor("x", [None] * x.ndim if dynamic else x.shape, kind)]
    feeds = [x]
    if not known:
        for name, value in given_in.items():
            infos.append(models.tensor(name, value.shape, helper.np_dtype_to_tensor_dtype(value.dtype)))
            feeds.append(value)
    node = models.node("Resize", names, ["y"], **attributes)
    outputs = [models.tensor("y", [None] * x.ndim, kind)]
    return models.model([node], infos, outputs, initializers=given_in if known else None, opsets={"": 19}), feeds


def _right(x: np.ndarray, given_in: dict[str, np.ndarray], attributes: dict[str, Any]) -> np.ndarray:
    return resized(
        x,
        **given_in,
        axes=attributes.get("axes"),
        policy=attributes.get("keep_aspect_ratio_policy", "stretch"),
        extrapolation=attributes.get("extrapolation_value", 0.0),
        coordinates=attributes.get("coordinate_transformation_mode", "half_pixel"),
        mode=attributes["mode"],
        rounding=attributes.get("nearest_mode", "round_prefer_floor"),
        antialias=attributes.get("antialias", 0),
        exclude=attributes.get("exclude_outside", 0),
        a=attributes.get("cubic_coeff_a", -0.75),
    )


def _same(result: np.ndarray, right: np.ndarray) -> None:
    assert result.shape == right.shape
    if result.dtype.kind in "ui":
        info = np.iinfo(result.dtype)
        right = np.clip(np.round(right), info.min, info.max)
        assert np.abs(result.astype(float) - right).max(initial=0) <= 1  # what is halfway between two numbers
        return
    loose = 1e-2 if result.dtype == np.float16 else 1e-3
    np.testing.assert_allclose(result.astype(float), right, rtol=loose, atol=loose)


@settings(max_examples=30, deadline=None)
@given(case=cases())
def test_the_rule_is_what_the_documentation_says(case: Case) -> None:
    new, changes = rewritten(case.model, "Resize")
    assert {c.pass_name for c in changes} <= {"resize", "resize_axes"}
    _same(computed(new, *case.feeds)[0], case.right)


@settings(max_examples=15, deadline=None)
@given(case=cases())
def test_openvino_is_right_whatever_the_attributes(case: Case) -> None:
    pytest.importorskip("openvino")
    prepared = omb.OpenvinoBackend.prepare(case.model)
    for _ in range(2):
        _same(prepared.run(case.feeds)[0], case.right)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_what_is_not_a_number_stays_among_its_neighbours(mode: str, special: float) -> None:
    x = np.arange(12, dtype=np.float32)
    x[1] = special
    attributes = {"mode": mode, "antialias": 1}
    model, feeds = _model(x, {"sizes": np.array([24])}, attributes, known=True)
    new, _ = rewritten(model, "Resize")
    result = computed(new, *feeds)[0]
    assert np.isfinite(result[8:]).all()
    assert not np.isfinite(result[2:4]).any()


def test_places_are_exact_where_they_are_halves(openvino: type[omb.Preset]) -> None:
    attributes = {"mode": "nearest", "keep_aspect_ratio_policy": "not_larger", "nearest_mode": "round_prefer_floor"}
    for length in (4, 6, 49, 98):
        for size in (3, 7, 14, 21):
            x = np.arange(length, dtype=np.float32)[:, None] + np.zeros((1, 2), np.float32)
            sizes = {"sizes": np.array([size, 1000])}
            model, feeds = _model(x, sizes, attributes, known=False)
            _same(openvino.prepare(model).run(feeds)[0], _right(x, sizes, attributes))


@pytest.mark.parametrize("opset", [11, 13])
def test_empty_scales_of_old_opsets(openvino: type[omb.Preset], opset: int) -> None:
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    empty = np.zeros(0, np.float32)
    sizes = np.array([1, 1, 3, 7])
    node = models.node("Resize", ["x", "e", "e", "s"], ["y"], mode="cubic", exclude_outside=1)
    constants = {"e": empty, "s": sizes}
    model = models.model([node], [models.tensor("x", x.shape)], [models.tensor("y", None)], initializers=constants)
    model.opset_import[0].version = opset
    prepared = openvino.prepare(model)
    assert "resize" in {a.pass_name for a in prepared.adaptations}
    _same(prepared.run([x])[0], resized(x, sizes=sizes, coordinates="half_pixel", mode="cubic", exclude=1))


def test_one_model_resizes_images_of_many_sizes(openvino: type[omb.Preset]) -> None:
    given_in = {"scales": np.array([0.5, 0.75], np.float32)}
    attributes = {"mode": "linear", "antialias": 1, "axes": [2, 3]}
    rng = np.random.default_rng(0)
    images = [rng.normal(size=(2, 3, *size)).astype(np.float32) for size in ((8, 8), (5, 11), (2, 4), (8, 8))]
    model, _ = _model(images[0], given_in, attributes, known=False, dynamic=True)
    prepared = openvino.prepare(model)
    for x in images:
        _same(prepared.run([x, given_in["scales"]])[0], _right(x, given_in, attributes))


@pytest.mark.parametrize(
    ("shape", "attributes", "given_in"),
    [
        ((3,), {"mode": "linear"}, {"scales": np.float32([1.25])}),
        ((2, 3, 4), {"mode": "cubic"}, {"sizes": np.array([5, 7, 9])}),
        ((2, 3, 4, 5), {"mode": "cubic"}, {"sizes": np.array([2, 7, 9, 11])}),
        ((2, 3, 4, 5), {"mode": "linear"}, {"sizes": np.array([3, 7, 9, 11])}),
        ((2, 3, 2, 2, 2, 2), {"mode": "linear"}, {"sizes": np.array([2, 3, 2, 2, 3, 3])}),
    ],
)
def test_forms_without_a_telling_attribute(
    openvino: type[omb.Preset], shape: Any, attributes: Any, given_in: Any
) -> None:
    """An axis that stays as long as it is, several axes at once, many axes: OpenVINO's own form is not used."""
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    model, feeds = _model(x, given_in, attributes, known=True)
    prepared = openvino.prepare(model)
    assert "resize" in {a.pass_name for a in prepared.adaptations}
    _same(prepared.run(feeds)[0], _right(x, given_in, attributes))


def test_what_openvino_gets_right_is_left_to_it(openvino: type[omb.Preset]) -> None:
    x = np.random.default_rng(1).normal(size=(1, 3, 4, 5)).astype(np.float32)
    given_in = {"scales": np.float32([1, 1, 2, 2])}
    for mode in ("nearest", "linear", "cubic"):
        model, feeds = _model(x, given_in, {"mode": mode}, known=True, dynamic=True)
        prepared = openvino.prepare(model)
        assert not prepared.adaptations
        _same(prepared.run(feeds)[0], _right(x, given_in, {"mode": mode}))


def test_scales_that_crop_are_refused(openvino: type[omb.Preset]) -> None:
    """ONNX's documentation multiplies their size by the region's, its shape inference does not."""
    x = np.ones((4, 4), np.float32)
    given_in = {"roi": np.float32([0, 0, 0.5, 0.5]), "scales": np.float32([2, 2])}
    attributes = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
    model, _ = _model(x, given_in, attributes, known=True)
    with pytest.raises(omb.UnsupportedModelError):
        openvino.prepare(model)


@pytest.mark.parametrize("kind", [TensorProto.UINT8, TensorProto.INT8])
@pytest.mark.parametrize("shape", [[1, 2, 4, 5], ["n", "c", "h", "w"]])
def test_cubic_interpolation_of_bytes(ort_cpu: type[omb.Preset], kind: int, shape: list[Any]) -> None:
    """ONNX Runtime's own fails when it runs."""
    form = {"mode": "cubic", "coordinate_transformation_mode": "half_pixel"}
    made = models.one_node(
        "Resize", [models.tensor("x", shape, kind)], [models.tensor("y", None, kind)], opset=18, **form
    )
    made.graph.node[0].input.extend(["", "", "s"])
    made.graph.input.append(models.tensor("s", [4], models.INT64))
    x = (np.random.default_rng(0).integers(-60, 60, (1, 2, 4, 5)) + (60 if kind == TensorProto.UINT8 else 0)).astype(
        helper.tensor_dtype_to_np_dtype(kind)
    )
    for sizes in ([1, 2, 7, 9], [1, 2, 4, 3]):
        found = ort_cpu.prepare(made).run([x, np.array(sizes)])[0]
        wide = ReferenceEvaluator(made).run(None, {"x": x, "s": np.array(sizes)})[0]
        assert found.dtype == x.dtype
        assert np.abs(found.astype(int) - wide.astype(int)).max() <= 1


def test_large_integers_of_open_sizes_are_refused(openvino: type[omb.Preset]) -> None:
    """Also in a form that may be wrong for another reason, which would not refuse them."""
    tensors = [models.tensor("x", ["n", "c", "h", "w"], TensorProto.INT32), models.tensor("s", [4], models.INT64)]
    made = models.one_node("Resize", tensors[:1], [models.tensor("y", None, TensorProto.INT32)], opset=18, mode="cubic")
    made.graph.node[0].input.extend(["", "", "s"])
    made.graph.input.append(tensors[1])
    with pytest.raises(omb.UnsupportedModelError, match=r"integers beyond 2\*\*24"):
        openvino.prepare(made)


@pytest.mark.parametrize("first", [-1, 0])
def test_a_scale_that_is_not_above_0_is_refused(openvino: type[omb.Preset], first: int) -> None:
    """It is not valid; gathering nothing along an axis ended the process."""
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[1, 2, 3, 4] x) => (float[a, b, c, d] y)
        <float[4] s = {{{first}, 1, 1, 2}}, float[0] n = {{}}> {{ y = Resize <mode = "nearest"> (x, n, s) }}"""
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(made)


def test_a_size_below_0_is_refused(openvino: type[omb.Preset]) -> None:
    """It is not valid; the smaller ratio was computed of it, which ended the process."""
    made = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["": 19]> g (float[1, 1, 1, 1] x) => (float[a, b, c, d] y) <int64[2] s = {7, -2}> {
        y = Resize <axes = [2, 3], mode = "nearest", keep_aspect_ratio_policy = "not_larger"> (x, , , s) }"""
    )
    with pytest.raises(omb.OnnxMultiBackendError):
        openvino.prepare(made)


@pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    ("sizes", "factors", "expected"),
    [
        ("1, 2, 3, 4", "scales {0.5, 1, 2, 1}", (0, 2, 6, 4)),
        ("1, 2, 3, 4", "scales {0.5, 1.5, 2, 1.25}", (0, 3, 6, 5)),
        ("1, 1, 3, 4", "scales {0.5, 0.5, 2, 2}", (0, 0, 6, 8)),
        ("1, 2, 3, 4", "sizes {0, 2, 6, 4}", (0, 2, 6, 4)),
    ],
)
def test_of_one_element_nothing_is_left(
    preset: type[omb.Preset], mode: str, sizes: str, factors: str, expected: tuple[int, ...]
) -> None:
    """OpenVINO refuses it; gathering along the other axes then ended the process."""
    named, _, numbers = factors.partition(" ")
    if preset.__name__ == "OrtCpuBackend" or (preset.__name__ == "OrtOpenvinoBackend" and named == "sizes"):
        pytest.skip("ONNX Runtime, which gets it here, refuses a result of no elements")
    given = f"float[4] f = {numbers}" if named == "scales" else f"int64[4] f = {numbers}"
    read = "x, n, f" if named == "scales" else "x, n, n, f"
    made = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{sizes}] x) => (float[a, b, c, d] y) <{given}, float[0] n = {{}}>
        {{ y = Resize <mode = "{mode}"> ({read}) }}"""
    )
    x = np.ones([int(size) for size in sizes.split(",")], np.float32)
    assert preset.prepare(made, fallback="full").run(x)[0].shape == expected
