# SPDX-License-Identifier: Apache-2.0
"""Forms that end OpenVINO's process with a signal: the bare form is run in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnx_multi_backend as omb
from backend_test.unit import models

pytest.importorskip("openvino")

BARE = """
import sys
import numpy as np
import onnx_multi_backend as omb
for _ in range(3):
    prepared = omb.OpenvinoBackend.prepare(sys.argv[1], adapt=False)
    prepared.run([np.ones([d or 1 for d in i.shape], i.dtype) for i in prepared.get_inputs()])
"""


def one(op_type: str, shape: Any, constants: dict[str, np.ndarray], outputs: int = 1, **attributes: Any) -> ModelProto:
    node = models.node(op_type, ["x", *constants], [f"y{i}" for i in range(outputs)], **attributes)
    made = [models.tensor(name, None) for name in node.output]
    return models.model([node], [models.tensor("x", shape)], made, initializers=constants, opsets={"": 19})


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


REFUSED = {
    "gathers beyond": one("GatherND", (3, 2), {"i": np.array([[9_000_000, 0]])}),
}
LEFT_OUT = {
    "an empty batch": one("LSTM", (3, 0, 2), {"w": zeros(1, 8, 2), "r": zeros(1, 8, 2)}, hidden_size=2),
}
CROPPED = {
    "crops more at the end": one("Pad", (2, 3), {"p": np.array([0, 4, 0, -5])}),
    "crops more at the beginning": one("Pad", (2, 3), {"p": np.array([0, -5, 0, 4])}),
}
REWRITTEN = {
    "gathers nothing": one("Gather", (2, 0), {"i": np.array([0, 1])}),
    "expands to nothing": one("Expand", (2, 0), {"s": np.array([2, 0])}),
    "resizes six axes": one(
        "Resize", (2, 2, 2, 2, 2, 2), {"r": zeros(0), "s": np.full(6, 2, np.float32)}, mode="linear"
    ),
}


@pytest.mark.parametrize("form", [*REFUSED, *LEFT_OUT, *CROPPED, *REWRITTEN])
def test_the_engine_still_dies_of_the_bare_form(form: str, tmp_path: Path) -> None:
    """Once this fails, an engine has been mended, and its entry in defects.py can go.

    What reads or writes beyond its memory may get away with it, or never end: a process or two may live.
    """
    path = tmp_path / "model.onnx"
    onnx.save({**REFUSED, **LEFT_OUT, **CROPPED, **REWRITTEN}[form], path)
    assert any(_dies(path) for _ in range(4))


def _dies(path: Path) -> bool:
    """Whether the bare form ends a process, or leaves it where it must be ended."""
    command = [sys.executable, "-c", BARE, str(path)]
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode < 0
    except subprocess.TimeoutExpired:
        return True


@pytest.mark.parametrize("form", REFUSED)
def test_it_is_refused_before_the_engine_sees_it(form: str) -> None:
    with pytest.raises(omb.UnsupportedModelError):
        omb.OpenvinoBackend.prepare(REFUSED[form])


@pytest.mark.parametrize("form", LEFT_OUT)
def test_what_has_no_elements_is_made_without_the_engine(form: str) -> None:
    result = omb.OpenvinoBackend.prepare(LEFT_OUT[form]).run([np.ones((3, 0, 2), np.float32)])[0]
    assert result.shape == (3, 1, 0, 2)


@pytest.mark.parametrize("form", REWRITTEN)
def test_it_is_rewritten_before_the_engine_sees_it(form: str) -> None:
    prepared = omb.OpenvinoBackend.prepare(REWRITTEN[form])
    assert prepared.adaptations
    shape = prepared.get_inputs()[0].shape
    result = prepared.run([np.ones(shape, np.float32)])[0]
    np.testing.assert_array_equal(result, np.ones((2, 0) if 0 in shape else [4] * 6))


@pytest.mark.parametrize(
    "pads", [[0, -1, 0, -2], [0, -3, 0, 2], [0, 2, 0, -1], [-1, 0, -1, 0], [0, 4, 0, -5], [0, -5, 0, 4]]
)
@pytest.mark.parametrize("shape", [(2, 3), ("a", "b")])
def test_pads_that_leave_something_or_nothing_run(pads: list[int], shape: Any) -> None:
    prepared = omb.OpenvinoBackend.prepare(one("Pad", shape, {"p": np.array(pads)}))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    right = np.pad(x, [(max(pads[i], 0), max(pads[2 + i], 0)) for i in range(2)])
    begin, end = ([max(-p, 0) for p in half] for half in (pads[:2], pads[2:]))
    right = right[begin[0] : right.shape[0] - end[0], begin[1] : right.shape[1] - end[1]]
    np.testing.assert_array_equal(prepared.run([x])[0], right)


def test_indices_within_the_data_run() -> None:
    prepared = omb.OpenvinoBackend.prepare(one("GatherND", (3, 2), {"i": np.array([[2, 1], [-3, -2]])}))
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(prepared.run([x])[0], [5, 0])
