# SPDX-License-Identifier: Apache-2.0
"""Processors that qemu-user emulates, and a Python on each.

A process that an emulated one forks is emulated too; one that it executes is not, and runs on the host. So a Python there
is a script that executes QEMU, and whoever starts processes starts that script (`enter`).
"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

QEMU = "qemu-x86_64"

#: By name what QEMU is told: a model of it, without what it would only warn that it cannot do.
PROCESSORS: Mapping[str, str] = {
    "Nehalem": "Nehalem",  # SSE4.2, Intel's name
    "Haswell": "Haswell,-pcid,-x2apic,-tsc-deadline,-hle,-invpcid,-rtm",  # AVX2, Intel's name
    "EPYC": "EPYC,-rdseed,-sha-ni,-fxsr-opt,-misalignsse,-3dnowprefetch,-osvw,-topoext,-nrip-save,-xsavec",  # AMD's name
}

#: What CPUID says there.
VENDORS: Mapping[str, str] = {"Nehalem": "GenuineIntel", "Haswell": "GenuineIntel", "EPYC": "AuthenticAMD"}

#: The widest vectors there. Engines choose kernels by instruction set, not by vendor.
VECTORS: Mapping[str, str] = {"Nehalem": "SSE4.2", "Haswell": "AVX2", "EPYC": "AVX2"}

#: One processor for each of them.
EACH_INSTRUCTION_SET = ("Nehalem", "Haswell")

#: The variable that names the Python of an emulated process; without it the process is the host's.
PYTHON = "OMB_EMULATED_PYTHON"

#: What the host's environment says of the host's processor.
_OF_THE_HOST = ("OPENBLAS_CORETYPE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA", "NPY_DISABLE_CPU_FEATURES")


def why_not() -> str:
    """Why nothing can be emulated here, and what to install; empty where it can."""
    if sys.platform != "linux":
        return "qemu-user emulates processors on Linux alone"
    return "" if shutil.which(QEMU) else f"there is no {QEMU}: install it (on Debian and Ubuntu the package qemu-user)"


def enter() -> None:
    """Have what this process executes run on its own processor: other Pythons, the server that workers fork from."""
    python = os.environ.get(PYTHON)
    if python is not None:
        sys.executable = python
        multiprocessing.set_executable(python)


def environment(python: Path) -> dict[str, str]:
    """The environment of an emulated Python: nothing in it is of the host's processor.

    Parameters
    ----------
    python : Path
        What `write_python` wrote; `enter` looks for it.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _OF_THE_HOST}
    return kept | {PYTHON: str(python)}


def write_python(name: str, folder: Path) -> Path:
    """Write a script that is this Python on an emulated processor.

    Parameters
    ----------
    name : str
        One of `PROCESSORS`.
    folder : Path
        Gets the script.
    """
    qemu = shutil.which(QEMU)
    assert qemu is not None, why_not()
    script = folder.resolve() / f"python-{name}"
    command = shlex.join([qemu, "-cpu", PROCESSORS[name], sys.executable])
    script.write_text(f'#!/bin/sh\nexec {command} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    return script
