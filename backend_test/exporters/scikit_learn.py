# SPDX-License-Identifier: Apache-2.0
"""Three scikit-learn pipelines, trained on data that scikit-learn brings: trees, a linear model and text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import FloatTensorType, StringTensorType
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from backend_test.exporters.exported import Exported

PRAISE = (
    "The model runs fast and gives the right answer.",
    "A pleasure to use: clear messages, exact results!",
    "Exactly what I needed, it works on every machine",
    "great documentation and a very fast engine",
    "It found the error in my model at once, great work",
    "The results are right on the GPU and on the CPU.",
)
BLAME = (
    "The model crashes and the message says nothing.",
    "A wrong answer without a warning, very slow too!",
    "it does not work on my machine, nothing but errors",
    "terrible documentation and a very slow engine",
    "It hides the error in my model, a waste of time",
    "The results are wrong on the GPU and on the CPU.",
)
#: Words that were seen and words that were not, capitals, characters beyond ASCII, no word at all.
REVIEWS = (
    "FAST engine, clear messages",
    "slow, and wrong on the CPU",
    "naïve façade, 試験",
    "?!",
    "error error error",
)


def export() -> Iterator[Exported]:
    yield trees()
    yield linear()
    yield text()


def trees() -> Exported:
    """A random forest on a column of words and columns of numbers; class names as labels, probabilities as a matrix."""
    wine = load_wine()
    numbers = wine.data.astype(np.float32)
    shades = np.array(["pale", "ruby", "dark"])[np.digitize(numbers[:, 9], [3.5, 6])]  # 9: color intensity
    # The numbers are not scaled: in float32 instead of float64, some would end on the other side of a threshold.
    columns = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [0]), remainder="passthrough")
    pipeline = make_pipeline(columns, RandomForestClassifier(20, max_depth=6, random_state=0))
    table = np.column_stack([shades.astype(object), numbers.astype(object)])
    pipeline.fit(table, wine.target_names[wine.target])
    types = [("shade", StringTensorType([None, 1])), ("numbers", FloatTensorType([None, numbers.shape[1]]))]
    table = table[::3]
    table[0, 0] = "green"  # a word that was not seen
    inputs = {"shade": table[:, :1].astype(str), "numbers": table[:, 1:].astype(np.float32)}
    model = to_onnx(pipeline, initial_types=types, options={"zipmap": False})
    return Exported("trees", model, [(inputs, _classified(pipeline, table, "label", "probabilities"))])


def linear() -> Exported:
    """Scaling and a logistic regression; the probabilities come as a sequence of maps, as is skl2onnx's default."""
    wine = load_wine()
    numbers = wine.data.astype(np.float32)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(numbers, wine.target_names[wine.target])
    model = to_onnx(pipeline, numbers[:1])
    labels, probabilities = _classified(pipeline, numbers, "label", "probabilities").values()
    maps = np.array(list(map(tuple, probabilities)), dtype=[(str(name), np.float32) for name in pipeline.classes_])
    return Exported("linear", model, [({"X": numbers}, {"output_label": labels, "output_probability": maps})])


def text() -> Exported:
    """Words and pairs of words, weighted, and a logistic regression, from strings to 0 and 1."""
    # skl2onnx cannot express the word boundaries of scikit-learn's own pattern, so that its results would differ.
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern="[a-zA-Z0-9_]+")
    pipeline = make_pipeline(words, LogisticRegression(C=10))
    pipeline.fit(PRAISE + BLAME, [1] * len(PRAISE) + [0] * len(BLAME))
    model = to_onnx(pipeline, initial_types=[("review", StringTensorType([None, 1]))], options={"zipmap": False})
    given = np.array(PRAISE + BLAME + REVIEWS)
    return Exported(
        "text", model, [({"review": given[:, None]}, _classified(pipeline, given, "label", "probabilities"))]
    )


def _classified(pipeline: Pipeline, given: np.ndarray, label: str, probabilities: str) -> dict[str, np.ndarray]:
    labels = pipeline.predict(given)
    return {
        label: labels.astype(np.int64 if labels.dtype.kind == "i" else str),
        probabilities: pipeline.predict_proba(given).astype(np.float32),
    }
