# SPDX-License-Identifier: Apache-2.0
"""Imported by the process that workers are forked from: ONNX's cases are generated once, and no engine is loaded."""

from __future__ import annotations

import gc
import signal

from onnx_multi_backend.conformance import (
    case_facts,  # noqa: F401  (imported once here, instead of in each worker)
    suite,  # noqa: F401
)
from onnx_multi_backend.conformance.cases import official_cases

signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the seconds that follow, and no traceback is printed
official_cases()
gc.collect()
gc.freeze()  # a collection in a worker would touch, and so copy, every page of them
