# SPDX-License-Identifier: Apache-2.0
"""``precision="default"`` on OpenVINO: what bfloat16 gains and costs where the processor has it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import onnx_multi_backend as omb
from benchmarks import models
from benchmarks.timing import row
from onnx_multi_backend.measuring.clock import Call, in_turns


def precision(folder: Path) -> list[dict[str, Any]]:
    """Runs in the engine's own precision beside float32; the largest error and the cosine stand behind the name."""
    rng = np.random.default_rng(0)
    picture = rng.uniform(-1, 1, (1, 3, 320, 320)).astype(np.float32)
    cases = (
        ("PP-OCRv4 rec", models.recognition(), models.recognition_input()),
        ("PP-OCRv4 det", models.detection(), picture),
        ("54 MB, convolutional", models.large(folder), models.large_input()),
    )
    rows = []
    for name, path, x in cases:
        exact = omb.prepare(path, preset="Openvino", cache_dir=False)
        default = omb.prepare(path, preset="Openvino", cache_dir=False, precision="default")
        calls: dict[str, Call] = {"default": partial(default.run, x), "f32": partial(exact.run, x)}
        a, b = (np.asarray(rep.run(x)[0], np.float64).ravel() for rep in (default, exact))
        cosine = a @ b / (np.linalg.norm(a) * np.linalg.norm(b))
        told = f"error {np.abs(a - b).max():.2g} of {np.abs(b).max():.2g}, cosine {cosine:.6f}"
        figures = in_turns(calls, rounds=31, repeat=3, warm_up=3)
        rows.append(row(f"precision, {name}: {told}", "default", "f32", figures, 1.02))
        kind = default._session.native.get_property("INFERENCE_PRECISION_HINT")  # type: ignore[attr-defined]
        rows[-1]["precision"] = str(kind)
    return rows
