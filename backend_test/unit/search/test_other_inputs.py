# SPDX-License-Identifier: Apache-2.0
"""A refusal is justified where the bare engine is right with the given inputs, and wrong with others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from backend_test.search import engines
from backend_test.search.answers import Answer
from backend_test.search.other_inputs import wrong_with_others

pytest.importorskip("openvino")


class Here:
    """Stages in this process."""

    def run(self, name: str, work: Callable[[Callable[[str], None]], Answer], extra: int = 0) -> Answer:
        return work(lambda place: None)


@pytest.mark.parametrize(
    ("operator", "justified"),
    [
        ("Relu", True),  # OpenVINO computes int32 in float32
        ("Identity", False),
    ],
)
def test_a_refusal_is_justified_by_inputs_that_the_engine_errs_with(operator: str, justified: bool) -> None:
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 18]> g (int32[8] x) => (int32[8] y) {{ y = {operator} (x) }}'
    )
    feeds = [{"x": np.arange(8, dtype=np.int32)}] * 2
    asked = {"bare": engines.openvino, "unoptimized": engines.ort_unoptimized, "reference": engines.reference}
    answers = {name: engine(model.SerializeToString(), feeds) for name, engine in asked.items()}
    assert wrong_with_others("Openvino", model, feeds, answers, Here()) is justified  # type: ignore[arg-type]


def test_nobody_is_believed_who_errs_with_the_given_inputs() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> g (int32[8] x) => (int32[8] y) { y = Relu (x) }'
    )
    feeds = [{"x": np.arange(8, dtype=np.int32)}] * 2
    data = model.SerializeToString()
    wrong = Answer("result", [[np.zeros(8, np.int32)]] * 2)
    answers = {"bare": engines.openvino(data, feeds), "unoptimized": wrong, "reference": wrong}
    assert not wrong_with_others("Openvino", model, feeds, answers, Here())  # type: ignore[arg-type]
