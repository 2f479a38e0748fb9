# SPDX-License-Identifier: Apache-2.0
"""Pass: stamp the IR version down to what the engine reads."""

from __future__ import annotations

from onnx_multi_backend.adapt.work import Adaptation, Work


def ir_version(work: Work) -> None:
    """Lower the IR version where it is above the engine's.

    The IR version says which fields of the format may occur. Newer fields are either types, which the engine judges
    by themselves, or annotations that do not change a result (multi-device configuration, metadata): source
    https://onnx.ai/onnx/repo-docs/Versioning.html and the history in onnx.proto.
    """
    given = work.model.ir_version
    if given <= work.limits.sure_ir_version:
        return
    limit = work.limits.max_ir_version()
    if limit is None or given <= limit:
        return
    work.edit().ir_version = limit
    work.changes.append(
        Adaptation("ir_version", "", f"IR version {given} to {limit}", f"the engine reads IR versions up to {limit}")
    )
