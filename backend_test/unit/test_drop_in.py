# SPDX-License-Identifier: Apache-2.0
"""Packages that use ONNX Runtime run with ``onnxruntime.InferenceSession`` replaced by ours, and nothing else.

``nox -s drop_in`` installs them: constraints/drop-in.txt.
"""

from __future__ import annotations

import importlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onnx_multi_backend as omb
from backend_test.unit.test_rapidocr import TEXT, draw

ort = pytest.importorskip("onnxruntime")

#: Where a package binds the name when it is imported, instead of looking it up in onnxruntime.
BOUND = {"rapidocr_onnxruntime": "rapidocr_onnxruntime.utils.infer_engine"}

PROGRAM = (
    b"import os\n\n\ndef main(names):\n    for name in names:\n        print(os.path.join(name, 'y'))\n\n\nmain([])\n"
)


def rapidocr_onnxruntime(package: Any) -> Any:
    """Three models after one another: where text is, which way up, what it says."""
    found, _ = package.RapidOCR()(draw(480, 160, (40, 50), 40))
    assert [text for _, text, _ in found] == [TEXT]
    return found


def magika(package: Any) -> Any:
    """What kind of file some bytes are; which are given as a list, not as an array."""
    found = package.Magika().identify_bytes(PROGRAM)
    assert found.output.label == "python"
    return found.output.label, found.score


def ddddocr(package: Any) -> Any:
    """A captcha's letters, from a quantized model that declares its output with a wrong rank; and a detector."""
    from PIL import Image

    png = io.BytesIO()
    Image.fromarray(draw(160, 60, (10, 10), 34)[..., ::-1]).save(png, "PNG")
    text = package.DdddOcr(show_ad=False).classification(png.getvalue())
    assert text.startswith("Hel")  # neighbours that are equal are one
    return text.lower(), package.DdddOcr(det=True, ocr=False, show_ad=False).detection(png.getvalue())


def arabic_name_romanizer(package: Any) -> Any:
    """An encoder, and a decoder in a search for the best letters: a run a step, with shapes that grow."""
    inference = importlib.import_module("arabic_name_romanizer.inference")
    model = inference.OnnxModel(Path(package.__file__).parent / "resources")
    found = model.transliterate_units(["قنديلان", "محمد"], None, 3)
    assert any("mohamed" in name.lower() or "mohammed" in name.lower() for name, _ in found[1])
    return found


def khmersm(package: Any) -> Any:
    """Words in a script that has no blanks between them; weights in a file beside the model."""
    found = package.segment("ខ្ញុំចង់ទៅសាលារៀន")
    assert len(found.split("\u200b" if "\u200b" in found else " ")) > 1
    return found


USES: list[Callable[[Any], Any]] = [rapidocr_onnxruntime, magika, ddddocr, arabic_name_romanizer, khmersm]


def installed(name: str) -> Any:
    """The package, or a skip that says what to install."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} needs {error.name}: pip install --no-deps -r constraints/drop-in.txt")


def same(one: Any, other: Any) -> None:
    if isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    elif isinstance(one, str):
        assert one == other
    else:
        np.testing.assert_allclose(one, other, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("preset", ["OrtCpu", "Openvino"])
@pytest.mark.parametrize("use", USES, ids=lambda use: use.__name__)
def test_a_package_runs_on_it(use: Callable[[Any], Any], preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package = installed(use.__name__)
    expected = use(package)
    made = []

    class Session(omb.InferenceSession):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            made.append(self.prepared.preset)

    monkeypatch.setenv("ONNX_MULTI_BACKEND_PRESET", preset)
    monkeypatch.setattr(ort, "InferenceSession", Session)
    if use.__name__ in BOUND:
        monkeypatch.setattr(importlib.import_module(BOUND[use.__name__]), "InferenceSession", Session)
    found = use(package)
    assert made
    assert set(made) == {preset}
    same(
        json.loads(json.dumps(found, default=np.ndarray.tolist)),
        json.loads(json.dumps(expected, default=np.ndarray.tolist)),
    )
