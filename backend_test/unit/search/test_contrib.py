# SPDX-License-Identifier: Apache-2.0
"""Random operators of ONNX Runtime's domain: the same random numbers make the same, and ONNX Runtime runs them twice."""

from __future__ import annotations

import random
from collections import Counter

import onnxruntime as ort
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NotImplemented_

from backend_test.search.graphs.contrib import random_contrib


def test_they_run() -> None:
    operators: Counter[str] = Counter()
    lacking = 0
    for seed in range(120):
        made, again = (random_contrib(random.Random(seed)) for _ in range(2))
        assert made.model == again.model
        options = ort.SessionOptions()
        options.log_severity_level = 4
        # The optimizer of ONNX Runtime 1.24 breaks a FusedConv with a sum.
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        try:
            session = ort.InferenceSession(made.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except NotImplemented_:  # there is no kernel for some in float16
            lacking += 1
            continue
        operators[made.model.graph.node[0].op_type] += 1
        for feeds in made.feeds:
            session.run(None, feeds)
    assert lacking < 30
    assert len(operators) > 12
