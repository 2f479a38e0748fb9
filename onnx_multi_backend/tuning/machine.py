# SPDX-License-Identifier: Apache-2.0
"""The machine, as reports name it."""

from __future__ import annotations

from datetime import UTC, datetime

from onnx_multi_backend.host import cpus, processor, versions
from onnx_multi_backend.host.surroundings import PACKAGES
from onnx_multi_backend.tuning.report import Machine


def here() -> Machine:
    """The machine that this process runs on."""
    packages = (*PACKAGES, "onnx", "numpy")
    usable = cpus.usable()
    return Machine(
        datetime.now(UTC).isoformat(timespec="seconds"),
        str(processor.current()),
        usable.count,
        usable.why,
        {name: version for name in packages if (version := versions.installed_version(name))},
    )
