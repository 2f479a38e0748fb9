# SPDX-License-Identifier: Apache-2.0
"""How much memory this process has had."""

from __future__ import annotations

import sys
from pathlib import Path


def peak() -> int | None:
    """The most resident memory so far, in bytes; None where the system does not tell.

    ``ru_maxrss`` would begin with that of the process which started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return _from_resource()
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else None


def _from_resource() -> int | None:
    if sys.platform == "win32":
        return None
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
