# SPDX-License-Identifier: Apache-2.0
"""How much memory a worker may hold, so that one case cannot take the machine's."""

from __future__ import annotations

import re
import sys

from onnx_multi_backend.errors import OptionError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def parse_memory(text: str) -> int:
    """Read a size such as ``2GiB`` or ``800MB``, or a number of bytes.

    Raises
    ------
    OptionError
        It is not a size; or this system cannot limit a process's memory.
    """
    parts = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]i?|)b?", text.strip().lower())
    size = int(float(parts[1]) * _UNITS[parts[2]]) if parts else 0
    if not size:
        raise OptionError(f"A limit of memory is a size such as 2GiB or 800MB, not {text!r}.")
    if not sys.platform.startswith("linux"):
        raise OptionError(f"A limit of memory needs Linux; {sys.platform} does not count a process's memory.")
    return size


def size_text(size: int) -> str:
    """Return a size in MiB."""
    return f"{size / 2**20:,.0f} MiB"


def limit_memory(size: int) -> None:
    """Have this process, and each that it starts, hold so many bytes of data at the most.

    RLIMIT_DATA counts what can be written, on Linux the memory that is mapped as well; the addresses that engines reserve
    by the terabyte, and files that are mapped to be read, do not count.
    """
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = size if most == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_DATA, (allowed, most))
