# SPDX-License-Identifier: Apache-2.0
"""The command, ``python -m backend_test.command``, with ONNX's cases as `cases_once` keeps them, for tests that start it."""

from backend_test import cases_once
from onnx_multi_backend.cli import main

if __name__ == "__main__":
    cases_once.hand_on()
    main()
