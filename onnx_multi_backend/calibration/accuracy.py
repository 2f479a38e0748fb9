# SPDX-License-Identifier: Apache-2.0
"""How far the results of a quantized model are from those of the float model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnx_multi_backend.calibration.batches import Batch
from onnx_multi_backend.calibration.bounds import upper_bound
from onnx_multi_backend.errors import OptionError

#: Takes a model's outputs (a named tuple) and the labels of a batch; returns one figure, or one for each sample. Higher is better.
Metric = Callable[[Any, Any], Any]

#: Runs a model; what comes back has outputs by name.
Run = Callable[[Mapping[str, Any]], Any]

#: How sure the bound on the metric's drop is.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class OutputError:
    """How far one output is from the float model's, over all batches that were held back.

    Attributes
    ----------
    name : str
    cosine : float
        The smallest cosine similarity of a batch.
    sqnr : float
        Signal to quantization noise, in dB.
    largest : float
        The largest absolute difference of an element.
    """

    name: str
    cosine: float
    sqnr: float
    largest: float


@dataclass(frozen=True)
class MetricDrop:
    """How much of the user's figure is lost.

    Attributes
    ----------
    float_figure, int8_figure : float
        Means over all samples.
    drop : float
        The mean difference.
    bound : float
        What the expected drop does not exceed, with a confidence of `CONFIDENCE`.
    samples : int

    Notes
    -----
    The bound rests on one assumption: the samples are drawn independently from what the model will meet. It holds for any number of them
    and any distribution within the metric's range. Source: Waudby-Smith and Ramdas, "Estimating means of bounded random variables
    by betting", 2024.
    """

    float_figure: float
    int8_figure: float
    drop: float
    bound: float
    samples: int


@dataclass(frozen=True)
class Accuracy:
    """What was measured on the batches that were held back."""

    outputs: tuple[OutputError, ...]
    metric: MetricDrop | None

    @property
    def cosine(self) -> float:
        """The smallest of an output."""
        return min((output.cosine for output in self.outputs), default=1.0)


def is_near(output: OutputError, cosine: float) -> bool:
    """Whether an output has a cosine, and noise of at most twice what goes with it where the noise is the only error."""
    if cosine <= 0 or output.cosine < cosine:
        return output.cosine >= cosine
    return output.sqnr == math.inf or 10 ** (-output.sqnr / 10) <= _most_noise(cosine)


def least_sqnr(cosine: float) -> float:
    """The signal-to-quantization-noise ratio in dB that `is_near` asks for; none where the cosine is 0 or below."""
    return -10 * math.log10(_most_noise(cosine)) if cosine > 0 else -math.inf


def _most_noise(cosine: float) -> float:
    """Twice the noise-to-signal ratio that goes with a cosine."""
    return 2 * (1 / cosine**2 - 1) + 1e-9


class Reference:
    """The float model's results on the batches that were held back.

    Parameters
    ----------
    run : callable
        Runs the float model.
    batches : callable
        Reads the batches, as often as it is called.
    names : sequence of str
        Of the outputs that are compared.
    metric : callable, optional
    metric_range : (float, float)
        Between what the metric's figures lie.
    """

    def __init__(
        self,
        run: Run,
        batches: Callable[[], Iterable[Batch]],
        names: Sequence[str],
        metric: Metric | None,
        metric_range: tuple[float, float],
    ) -> None:
        self._run = run
        self._batches = batches
        self._names = names
        self._metric = metric
        self._range = metric_range

    def compare(self, run: Run) -> Accuracy:
        """Run another model on the same batches.

        Raises
        ------
        OptionError
            A figure of the metric is outside of its range.
        """
        totals = [_Total() for _ in self._names]
        figures: tuple[list[float], list[float]] = ([], [])
        for batch in self._batches():
            expected, found = self._run(batch.feeds), run(batch.feeds)
            for total, name in zip(totals, self._names, strict=True):
                total.add(expected[name], found[name])
            if self._metric is not None:
                for kept, results in zip(figures, (expected, found), strict=True):
                    kept.extend(self._figures(self._metric(results, batch.labels)))
        outputs = tuple(total.error(name) for total, name in zip(totals, self._names, strict=True))
        return Accuracy(outputs, self._drop(*map(np.asarray, figures)) if self._metric is not None else None)

    def _figures(self, given: Any) -> list[float]:
        try:
            values = np.asarray(given, np.float64).reshape(-1)
        except (TypeError, ValueError) as error:
            raise OptionError(f"metric returns a number, or one for each sample; {given!r} came back.") from error
        low, high = self._range
        if not values.size or not (np.isfinite(values).all() and (values >= low).all() and (values <= high).all()):
            raise OptionError(
                f"metric gave {values.min() if values.size else 'nothing'} to {values.max() if values.size else 'nothing'}, outside of "
                f"metric_range {self._range}: the bound on its drop holds for figures in this range only."
            )
        return [float(value) for value in values]

    def _drop(self, right: np.ndarray[Any, Any], found: np.ndarray[Any, Any]) -> MetricDrop:
        width = self._range[1] - self._range[0]
        drops = right - found
        bound = upper_bound(drops, low=-width, high=width, confidence=CONFIDENCE)
        return MetricDrop(float(right.mean()), float(found.mean()), float(drops.mean()), bound, len(drops))


class _Total:
    """Sums over batches for one output."""

    def __init__(self) -> None:
        self._cosine = 1.0
        self._signal = self._noise = self._largest = 0.0

    def add(self, right: Any, found: Any) -> None:
        a, b = np.asarray(right), np.asarray(found)
        if a.shape != b.shape:
            self._cosine, self._largest, self._noise = -1.0, math.inf, math.inf
            return
        a, b = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
        if not a.size:
            return
        self._cosine = min(self._cosine, _cosine(a, b))
        self._signal += float(a @ a)
        self._noise += float((a - b) @ (a - b))
        self._largest = max(self._largest, float(np.abs(a - b).max()))

    def error(self, name: str) -> OutputError:
        if self._noise == 0:
            sqnr = math.inf
        else:
            sqnr = 10 * math.log10(self._signal / self._noise) if self._signal > 0 else -math.inf
        return OutputError(name, self._cosine, sqnr, self._largest)


def _cosine(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    if np.array_equal(a, b):
        return 1.0
    lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / lengths if lengths > 0 and math.isfinite(lengths) else 0.0
