# SPDX-License-Identifier: Apache-2.0
"""PP-OCRv4's detection and recognition models on a picture of rendered text."""

from __future__ import annotations

import functools
import importlib.util
from itertools import combinations
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnx_multi_backend as omb

TEXT = "Hello ONNX 2026"
PRESETS = ("OrtCpu", "Openvino", "OrtOpenvino", "OrtOpenvinoFloat")

pytest.importorskip("PIL", reason="Pillow, which draws the picture, is not installed")


def model(name: str) -> Path:
    """One of the models in the package rapidocr_onnxruntime, which itself is not imported."""
    spec = importlib.util.find_spec("rapidocr_onnxruntime")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("the package rapidocr-onnxruntime, which carries the models, is not installed")
    return Path(spec.submodule_search_locations[0]) / "models" / f"ch_PP-OCRv4_{name}_infer.onnx"


def draw(width: int, height: int, at: tuple[int, int], size: int) -> np.ndarray:
    """Black text on white, as an array of BGR bytes."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(image).text(at, TEXT, fill="black", font=ImageFont.load_default(size))
    return np.asarray(image)[:, :, ::-1]


def detection_input() -> np.ndarray:
    """Normalized as PP-OCR does for detection; both sides multiples of 32."""
    pixels = draw(480, 160, (40, 50), 40).astype(np.float32) / 255
    normal = (pixels - np.float32([0.485, 0.456, 0.406])) / np.float32([0.229, 0.224, 0.225])
    return np.ascontiguousarray(normal.transpose(2, 0, 1)[None])


def recognition_input() -> np.ndarray:
    """One line of text, 48 high, in [-1, 1]."""
    pixels = draw(320, 48, (8, 2), 34).astype(np.float32) / 255
    return np.ascontiguousarray(((pixels - 0.5) / 0.5).transpose(2, 0, 1)[None].astype(np.float32))


@functools.cache
def results(name: str) -> dict[str, np.ndarray]:
    """The model's output on each preset that is usable here."""
    given = detection_input() if name == "det" else recognition_input()
    usable = [p for p in PRESETS if omb.availability()[p].usable]
    return {p: omb.presets()[p].prepare(model(name), input_example=given).run(given)[0] for p in usable}


@pytest.mark.parametrize("name", ["det", "rec"])
def test_the_presets_agree(name: str) -> None:
    found = results(name)
    assert {"OrtCpu", "Openvino"} <= set(found)
    for one, other in combinations(found, 2):
        assert np.abs(found[one] - found[other]).max() < 1e-3, (one, other)


def test_detection_finds_the_text_where_it_was_drawn() -> None:
    model("det")
    for preset, probability in results("det").items():
        assert probability.shape == (1, 1, 160, 480), preset
        rows, columns = np.nonzero(probability[0, 0] > 0.3)
        assert 40 <= rows.min() < rows.max() <= 120, preset
        assert 30 <= columns.min() < 60 < 250 < columns.max() < 470, preset


def test_recognition_reads_the_text() -> None:
    metadata = {p.key: p.value for p in onnx.load(model("rec")).metadata_props}
    characters = ["", *metadata["character"].splitlines(), " "]  # class 0 is the blank of CTC
    for preset, probabilities in results("rec").items():
        assert probabilities.shape[2] == len(characters), preset
        best = probabilities[0].argmax(axis=1)
        kept = [c for i, c in enumerate(best) if c != 0 and (i == 0 or c != best[i - 1])]
        assert "".join(characters[c] for c in kept) == TEXT, preset


def test_the_provider_runs_all_of_the_model(openvino_ep: type[omb.Preset]) -> None:
    for name in ("det", "rec"):
        placement = openvino_ep.prepare(model(name)).placement()
        elsewhere = {n.op_type for n in placement if n.provider != "OpenVINOExecutionProvider"}
        assert placement
        assert elsewhere == set(), name
