# SPDX-License-Identifier: Apache-2.0
"""ONNX's own cases, generated once for all processes."""

from __future__ import annotations

import functools
import warnings

from onnx.backend.test.case.test_case import TestCase

from backend_test import cases_once
from onnx_multi_backend.conformance.cases import is_light, official_cases


@functools.cache
def cases() -> tuple[list[TestCase], list[TestCase]]:
    """The cases that hold inputs, and the light models, which hold none."""
    cases_once.keep()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [case for _, case in sorted(official_cases().items())]
    whole = [c for c in found if c.model is not None and c.data_sets]
    return whole, [c for c in found if is_light(c)]
