# SPDX-License-Identifier: Apache-2.0
"""What is paid once, and not for each model: imports before workers are forked, threads that sleep, OpenVINO's core.

None of it changes what a model comes to.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

#: Of the package: what prepares and runs models. None of it imports an engine before one is used.
_PACKAGES = ("adapt", "engines", "host", "models", "presets", "running", "sessions")

#: Sessions that live as long as the process does.
_alive: list[Any] = []


def preload() -> None:
    """Import what every worker needs, in the process that forks; no engine, whose import may start threads."""
    importlib.import_module("onnx.reference")
    importlib.import_module("onnx.version_converter")
    for name in _PACKAGES:
        package = importlib.import_module(f"onnx_multi_backend.{name}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)


@functools.cache
def settle(preset: str) -> None:
    """Spare this process what each of a preset's sessions would cost again."""
    from backend_test.search import engines
    from backend_test.soak import small_model

    bare = engines.bare_of(preset)
    if bare is engines.openvino:
        return
    _let_threads_sleep()
    if bare is engines.ort_openvino:
        # Its provider makes OpenVINO's core anew where no other session lives: a quarter of a small session's time.
        _alive.append(engines.ort_session(small_model().SerializeToString(), "OpenVINOExecutionProvider"))


def _let_threads_sleep() -> None:
    """ONNX Runtime's threads of a session wait for work by spinning: half of the time that a small session takes."""
    from onnx_multi_backend.engines.ort import threads

    own = threads.own

    def sleeping(given: Any) -> dict[str, Any]:
        may_be_added = given is None or isinstance(given, Mapping)
        return {**own(given), **({"session.intra_op.allow_spinning": "0"} if may_be_added else {})}

    threads.own = sleeping
