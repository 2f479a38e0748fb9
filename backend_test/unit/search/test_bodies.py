# SPDX-License-Identifier: Apache-2.0
"""Random bodies: the same random numbers make the same, and ONNX Runtime runs them twice."""

from __future__ import annotations

import random
from collections import Counter

import onnx
import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotImplemented_

from backend_test.search.graphs.bodies import random_bodies
from onnx_multi_backend.models.graph_walk import all_nodes


def test_bodies_are_valid_and_run() -> None:
    operators: Counter[str] = Counter()
    lacking = 0
    for seed in range(60):
        made, again = (random_bodies(random.Random(seed)) for _ in range(2))
        assert made.model == again.model
        onnx.checker.check_model(made.model, full_check=True)
        operators.update(node.op_type for node in all_nodes(made.model))
        options = ort.SessionOptions()
        options.log_severity_level = 4
        try:
            session = ort.InferenceSession(made.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except NotImplemented_:  # ONNX Runtime 1.24 has no Where of uint32
            lacking += 1
            continue
        for feeds in made.feeds:
            session.run(None, feeds)
    assert lacking < 6
    assert min(operators[name] for name in ("If", "Loop", "Scan")) > 10
