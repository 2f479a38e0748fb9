# SPDX-License-Identifier: Apache-2.0
"""Casts that change nothing together, beside nodes that OpenVINO's execution provider leaves to the CPU."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import onnx_multi_backend as omb

pytestmark = pytest.mark.filterwarnings("ignore::onnx_multi_backend.FallbackWarning")

#: Smaller and larger in turn: what is passed on is read from where it was in the run before.
SIZES = (1000, 7, 3, 900, 5, 4, 800, 2)


def prepared(preset: type[omb.Preset], kind: str, body: str) -> omb.PreparedModel:
    text = f'<ir_version: 9, opset_import: ["": 18]> g ({kind}[n] x) => ({kind}[n] y) {{ {body} }}'
    return preset.prepare(onnx.parser.parse_model(text))


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("int32", "a = Cast <to = 4> (x) y = Cast <to = 6> (a)"),
        ("int32", "a = Cast <to = 7> (x) b = Cast <to = 6> (a) y = BitwiseAnd (b, b)"),
        ("int32", "a = BitwiseAnd (x, x) b = Cast <to = 12> (a) c = Concat <axis = 0> (b) y = Cast <to = 6> (c)"),
        ("int32", "a = BitwiseAnd (x, x) b = Cast <to = 5> (a) c = Cast <to = 6> (b) y = BitwiseAnd (c, c)"),
        ("int8", "a = BitwiseAnd (x, x) y = Cast <to = 3> (a)"),
    ],
    ids=["uint16 and back", "before the CPU", "behind the CPU", "between", "the same type"],
)
def test_what_casts_pass_on_is_right_in_smaller_runs_too(openvino_ep: type[omb.Preset], kind: str, body: str) -> None:
    ours, right = prepared(openvino_ep, kind, body), prepared(omb.OrtCpuBackend, kind, body)
    assert any(node.provider != "CPUExecutionProvider" for node in ours.placement())
    for size in SIZES:
        fed = (np.arange(size) * 70001 % 100003).astype(kind)
        np.testing.assert_array_equal(ours.run([fed])[0], right.run([fed])[0], f"{size} elements")


@pytest.mark.parametrize(
    "body",
    [
        "a = BitwiseAnd (x, x) b = Cast <to = 1> (a) y = Cast <to = 6> (b)",
        "a = BitwiseAnd (x, x) b = Cast <to = 7> (a) c = Add (b, b) y = Cast <to = 6> (c)",
    ],
    ids=["in floating point", "with work between"],
)
def test_casts_that_do_something_stay_as_they_are(openvino_ep: type[omb.Preset], body: str) -> None:
    ours = prepared(openvino_ep, "int32", body)
    assert "groups_apart" not in [change.pass_name for change in ours.adaptations]
