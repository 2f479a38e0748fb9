# SPDX-License-Identifier: Apache-2.0
"""What the searches spare themselves changes no answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx.parser
import pytest

import onnx_multi_backend as omb
from backend_test.search import engines, sparing
from backend_test.search.answers import REFUSED, RESULT
from onnx_multi_backend.engines.ort import threads

pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[3]
RELU = onnx.parser.parse_model(
    '<ir_version: 9, opset_import: ["": 18]> g (float[2] x) => (float[2] y) { y = Relu (x) }'
).SerializeToString()
UNKNOWN = onnx.parser.parse_model(
    '<ir_version: 9, opset_import: ["": 18, "nobody": 1]> g (float[2] x) => (float[2] y) { y = nobody.Op (x) }'
).SerializeToString()


def test_what_is_imported_before_the_fork_starts_no_engine() -> None:
    code = "import sys; from backend_test.search import sparing; sparing.preload(); print(*sys.modules)"
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    loaded = done.stdout.split()
    assert "onnx_multi_backend.adapt.rules.resize" in loaded
    assert not {"onnxruntime", "openvino"}.intersection(loaded)


@pytest.mark.parametrize(("model", "kind"), [(RELU, RESULT), (UNKNOWN, REFUSED)], ids=["taken", "refused"])
def test_compatibility_says_the_same_of_what_is_prepared_already(
    model: bytes, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    anew = engines.compatibility("OrtCpu", model)
    kept = engines.Kept()
    assert engines.preset("OrtCpu", model, [], kept=kept).kind == kind

    def prepared_again(*args: object, **options: object) -> None:
        raise AssertionError

    monkeypatch.setattr(omb.OrtCpuBackend, "prepare", prepared_again)
    assert engines.compatibility("OrtCpu", model, kept=kept) == anew
    assert anew.kind == kind


@pytest.mark.parametrize("given", [None, {}, {"intra_op_num_threads": 2}])
def test_threads_sleep_while_there_is_no_work(given: dict[str, int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    before = threads.with_threads(given) or {}
    monkeypatch.setattr(threads, "own", threads.own)  # put back afterwards
    sparing.settle.__wrapped__("OrtCpu")
    assert threads.with_threads(given) == {**before, "session.intra_op.allow_spinning": "0"}
