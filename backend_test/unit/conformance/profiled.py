# SPDX-License-Identifier: Apache-2.0
"""Where nodes really ran, by ONNX Runtime's profiler."""

from __future__ import annotations

import json
from pathlib import Path

from onnx_multi_backend.conformance.cases import find_case
from onnx_multi_backend.running.prepared import PreparedModel


def providers_that_ran(prepared: PreparedModel, case_name: str) -> set[str]:
    """Run an official case on a session that profiles, and return the providers of the kernels that ran."""
    case = find_case(case_name)
    assert case is not None
    assert case.data_sets
    inputs, _ = case.data_sets[0]
    prepared.run(list(inputs))
    events = json.loads(Path(prepared._session.native.end_profiling()).read_text())  # type: ignore[attr-defined]
    return {e["args"]["provider"] for e in events if e.get("cat") == "Node" and "provider" in e.get("args", {})}
