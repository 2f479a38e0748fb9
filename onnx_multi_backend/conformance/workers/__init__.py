# SPDX-License-Identifier: Apache-2.0
"""Running cases in processes of their own, so that an engine's crash or hang costs one case and no more."""

from onnx_multi_backend.conformance.workers.pool import (
    MAX_TIMEOUT,
    TIMEOUT,
    describe_cases,
    load_worker,
    run_in_workers,
)
from onnx_multi_backend.conformance.workers.worker import Worker

__all__ = ["MAX_TIMEOUT", "TIMEOUT", "Worker", "describe_cases", "load_worker", "run_in_workers"]
