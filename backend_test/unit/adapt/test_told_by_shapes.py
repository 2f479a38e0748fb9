# SPDX-License-Identifier: Apache-2.0
"""What sizes tell an operator, and what has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.adapt.small_models import floats, parsed

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

#: Integers that an engine makes itself of x, of n elements.
MADE: dict[str, tuple[str, Any]] = {
    "Shape": ("s = Shape (x)", lambda x: [len(x)]),
    "Size": ("n = Size (x) one = Constant <value_ints = [1]> () s = Reshape (n, one)", lambda x: [len(x)]),
    "Add": ("h = Shape (x) s = Add (h, low)", lambda x: [len(x) - 2]),
    "ArgMax": ("s = ArgMax <axis = 0> (x)", lambda x: [x.argmax()]),
    "Range": (
        "n = Size (x) zero = Sub (n, n) one = Constant <value_int = 1> () s = Range (zero, n, one)",
        lambda x: range(len(x)),
    ),
}


@pytest.mark.parametrize("bounds", ["low", "low, high"])
@pytest.mark.parametrize("sizes", ["n", "5"])
@pytest.mark.parametrize("made", MADE)
def test_integers_that_are_limited_from_below(preset: type[omb.Preset], made: str, sizes: str, bounds: str) -> None:
    """OpenVINO 2025.4 had 0 for them, as PyTorch's clamp of a size is written."""
    nodes, wanted = MADE[made]
    model = parsed(
        f"""(float[{sizes}] x) => (int64[m] y) <int64 low = {{-2}}, int64 high = {{3}}> {{ {nodes} y = Clip (s, {bounds}) }}"""
    )
    prepared = preset.prepare(model, fallback="full")
    for count in (5,) if sizes == "5" else (5, 2, 6):
        x = floats(count)
        found = prepared.run([x])[0]
        assert found.tolist() == np.clip(list(wanted(x)), -2, 3 if "high" in bounds else None).tolist()


@pytest.mark.parametrize("split", ["v", "v, two"])
@pytest.mark.parametrize("last", ["k = SequenceLength (t)", "u = SequenceErase (t, zero) k = SequenceLength (u)"])
def test_a_sequence_of_as_many_tensors_as_a_run_tells(preset: type[omb.Preset], split: str, last: str) -> None:
    """OpenVINO counted one."""
    model = parsed(
        f"""(float[n, 2] x, float[m, 2] v) => (int64 k) <int64 two = {{2}}, int64 zero = {{0}}> {{
        s = SplitToSequence <axis = 0> ({split}) t = SequenceInsert (s, x) {last} }}"""
    )
    x, v = floats(1, 2), floats(4, 2)
    if preset.name == "Openvino":
        with pytest.raises(omb.UnsupportedModelError, match="count as one|lacks"):
            preset.prepare(model)
        return
    count = (4 if split == "v" else 2) + 1 - ("Erase" in last)
    assert preset.prepare(model, fallback="full").run([x, v])[0] == count


@pytest.mark.parametrize("kind", ["float", "int64", "float16"])
@pytest.mark.parametrize(("shape", "axis"), [((0, 5, 3), 1), ((5, 0), 0), ((0, 5), -1)])
def test_a_known_choice_of_nothing(preset: type[omb.Preset], shape: tuple[int, ...], axis: int, kind: str) -> None:
    """It ended the process of OpenVINO 2026."""
    sizes, results = ", ".join(map(str, shape)), ", ".join("abc"[: len(shape)])
    model = parsed(
        f"""({kind}[{sizes}] x) => ({kind}[{results}] y) <bool[5] c = {{1, 0, 1, 1, 1}}> {{ y = Compress <axis = {axis}> (x, c) }}"""
    )
    x = np.zeros(shape, "float32" if kind == "float" else kind)
    wanted = np.compress([True, False, True, True, True], x, axis=axis)
    assert preset.prepare(model, fallback="full").run([x])[0].shape == wanted.shape


@pytest.mark.parametrize("starts", ["a Shape", "a constant", "the run"])
@pytest.mark.parametrize("kind", ["float", "int64"])
def test_bounds_along_axes_that_a_run_tells(preset: type[omb.Preset], kind: str, starts: str) -> None:
    """Bounds that a Shape of fixed sizes told ended the process of OpenVINO 2026."""
    given = ", int64[1] t" if starts == "the run" else ""
    held = "int64[1] e = {3}, int64[1] i = {1}, int64[1] j = {2}" + (
        ", int64[1] t = {2}" if starts == "a constant" else ""
    )
    told = "h = Shape (x) t = Slice (h, i, j)" if starts == "a Shape" else ""
    model = parsed(
        f"({kind}[3, 2, 4] x, int64[1] axes{given}) => ({kind}[a, b, c] y) <{held}> {{ {told} y = Slice (x, t, e, axes) }}"
    )
    x = np.arange(24).reshape(3, 2, 4).astype("float32" if kind == "float" else "int64")
    start = 1 if starts == "the run" else 2
    prepared = preset.prepare(model, fallback="full")
    for axis in (0, 2, -1, 1):
        found = prepared.run([x, np.array([axis]), *([np.array([start])] if given else [])])[0]
        assert found.tolist() == np.take(x, range(start, min(3, x.shape[axis])), axis=axis).tolist()


@pytest.mark.parametrize(("kind", "known"), [("int64[p]", False), ("int64[2]", True)])
def test_sizes_of_a_number_that_a_run_tells(preset: type[omb.Preset], kind: str, *, known: bool) -> None:
    """OpenVINO counted one tensor for all."""
    model = parsed(
        f"(float[3, 4] x, {kind} p) => (int64 k) {{ r = Relu (x) s = SplitToSequence <axis = 0> (r, p) k = SequenceLength (s) }}"
    )
    if preset.name == "Openvino" and not known:
        with pytest.raises(omb.UnsupportedModelError, match="count as one|lacks"):
            preset.prepare(model)
        return
    assert preset.prepare(model, fallback="full").run([floats(3, 4), np.array([1, 2])])[0] == 2
