# SPDX-License-Identifier: Apache-2.0
"""What options of a quantization must be, found before anything is read."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from typing import Any

from onnx_multi_backend import option_words
from onnx_multi_backend.errors import OptionError, OptionTypeError


def check_options(
    *, exclude: Any, max_drop: Any, metric: Any, metric_range: Any, min_cosine: Any, batches: Any
) -> None:
    """Check the options of `quantize`.

    Raises
    ------
    OptionError
    """
    if isinstance(exclude, str) or not isinstance(exclude, Sequence) or not all(isinstance(n, str) for n in exclude):
        raise OptionTypeError(f"exclude is a list of names of nodes or operators; {exclude!r} was given.")
    if metric is not None and not callable(metric):
        raise OptionTypeError(f"metric is a function of outputs and labels; {metric!r} was given.")
    _check_number("max_drop", max_drop, 0, math.inf)
    _check_number("min_cosine", min_cosine, -1, 1)
    if max_drop is not None and metric is None:
        raise OptionError(
            f"{option_words.named('max_drop')} is about the figures of a metric: pass {option_words.named('metric')} too, or "
            f"{option_words.named('min_cosine')} instead."
        )
    pair = isinstance(metric_range, (tuple, list)) and len(metric_range) == 2
    if not pair or not all(isinstance(end, numbers.Real) and math.isfinite(end) for end in metric_range):
        raise OptionTypeError(f"metric_range is a pair of numbers (low, high); {metric_range!r} was given.")
    if not metric_range[0] < metric_range[1]:
        raise OptionError(f"metric_range is (low, high), low below high; {metric_range!r} was given.")
    check_batches(batches)


def check_batches(batches: Any) -> None:
    """Check a number of batches.

    Raises
    ------
    OptionError
    """
    if batches is None:
        return
    if isinstance(batches, bool) or not isinstance(batches, numbers.Integral):
        raise OptionTypeError(f"batches is a number of batches or None; {batches!r} was given.")
    if batches < 1:
        raise OptionError(f"batches is at least 1; {batches} was given. None reads all.")


def _check_number(name: str, value: Any, low: float, high: float) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise OptionTypeError(f"{name} is a number or None; {value!r} was given.")
    if not low <= float(value) <= high:
        raise OptionError(f"{name} lies between {low:g} and {high:g}; {value} was given.")
