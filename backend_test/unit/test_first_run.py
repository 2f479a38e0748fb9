# SPDX-License-Identifier: Apache-2.0
"""From the import to the first result, nothing is imported or searched that this run does not need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from backend_test.unit import models

#: Of a run on any preset.
NEVER = (
    *("typer", "rich", "jinja2", "tabulate", "pytest", "hypothesis"),
    *("onnx.reference", "onnx.backend.test"),
    *("packaging.specifiers", "difflib", "xxhash", "hashlib", "numpy.ma", "shlex"),
    *("onnx_multi_backend.inference_session", "onnx_multi_backend.presets.answers", "onnx_multi_backend.presets.knobs"),
    *("onnx_multi_backend.cli", "onnx_multi_backend.conformance", "onnx_multi_backend.isolation"),
    *("onnx_multi_backend.cache.store", "onnx_multi_backend.cache.fingerprint", "onnx_multi_backend.sessions.caching"),
    *(
        "onnx_multi_backend.adapt.lowering",
        "onnx_multi_backend.running.streaming",
        "onnx_multi_backend.running.verifying",
    ),
    *("onnx_multi_backend.presets.meant", "onnx_multi_backend.examples"),
    *("onnx_multi_backend.presets.ort_cuda", "onnx_multi_backend.presets.ort_tensorrt"),
    "onnx_multi_backend.presets.ort_openvino",
)

ORT = (
    *("openvino", "onnx_multi_backend.engines.openvino", "onnx_multi_backend.presets.openvino"),
    *("onnx_multi_backend.engines.across_nodes.around", "onnx_multi_backend.engines.ort.openvino_ep.lone_reductions"),
    *(
        "onnx_multi_backend.adapt.intervals.widths",
        "onnx_multi_backend.adapt.intervals.bounds",
        "onnx_multi_backend.engines.wrappers.bounded",
    ),
    *("onnx_multi_backend.adapt.rules", "onnx_multi_backend.host.processor", "multiprocessing", "concurrent.futures"),
)

#: What is dear: a look at every distribution, and a copy of every schema that onnx knows.
CODE = """
import importlib, importlib.metadata, json, sys
import numpy as np, onnx.backend.base
importlib.import_module(sys.argv[3])
before = set(sys.modules)
def dear(*_): raise AssertionError("a first run does not need this")
importlib.metadata.packages_distributions = importlib.metadata.entry_points = dear
onnx.defs.get_all_schemas_with_history = dear
import onnx_multi_backend as omb
getattr(omb, sys.argv[1]).prepare(sys.argv[2]).run(np.ones((2, 3), np.float32))
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.parametrize(
    ("name", "engine", "others"),
    [
        pytest.param("OrtCpuBackend", "onnxruntime", ORT, id="OrtCpu"),
        pytest.param("OpenvinoBackend", "openvino", ("onnxruntime", "onnx_multi_backend.presets.ort"), id="Openvino"),
    ],
)
def test_a_first_run_imports_what_it_needs(name: str, engine: str, others: tuple[str, ...], tmp_path: Path) -> None:
    pytest.importorskip(engine)
    path = tmp_path / "model.onnx"
    path.write_bytes(models.linear().SerializeToString())
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ONNX_MULTI_BACKEND")}
    done = subprocess.run(
        [sys.executable, "-c", CODE, name, str(path), engine],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    imported = json.loads(done.stdout)
    unneeded = [m for m in imported for name in (*NEVER, *others) if m == name or m.startswith(f"{name}.")]
    assert unneeded == []
