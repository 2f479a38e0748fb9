# SPDX-License-Identifier: Apache-2.0
"""In the tests of this folder, as in those of `one_thread.FOLDERS`, ONNX Runtime has one thread, but with `--whole-suites`."""

from __future__ import annotations

import pytest

from backend_test.one_thread import one
from onnx_multi_backend.engines.ort import threads


def test_onnx_runtime_has_one_thread_here(request: pytest.FixtureRequest) -> None:
    assert (threads.own is one) == (not request.config.getoption("--whole-suites"))


def test_numbers_that_a_user_names_stay() -> None:
    assert one(None) == one({"log_severity_level": 3}) == {"intra_op_num_threads": 1}
    assert one({"intra_op_num_threads": 4}) == one({"session.intra_op_thread_affinities": "1,2"}) == {}
    assert one(object()) == {}
