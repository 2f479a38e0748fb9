# SPDX-License-Identifier: Apache-2.0
"""Labels, baselines and ONNX's coverage report at the end of every test run; the examples of property tests."""

import gc
import signal

from hypothesis import settings

pytest_plugins = [
    "onnx_multi_backend.conformance.pytest_plugin",
    "backend_test.cases_once",
    "backend_test.sampling",
    "backend_test.one_thread",
    "backend_test.long_first",
]

# The same examples every time: what new ones find is not a fault of the change that is tested (`nox -s nightly` draws them).
settings.register_profile("fixed", derandomize=True, database=None)
settings.register_profile("new", print_blob=True)

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would every process that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Keep the tests and ONNX's cases, which stay to the end, out of every garbage collection that follows."""
    gc.collect()
    gc.freeze()
