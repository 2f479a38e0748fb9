# SPDX-License-Identifier: Apache-2.0
"""The instructions CPUID and XGETBV of x86-64: what the processor that runs this process says of itself.

The operating system's list (``/proc/cpuinfo``) is another machine's under emulation: ``qemu-x86_64`` shows the host's.
Packages that read it (py-cpuinfo, archspec) show the same, and none of them asks XGETBV, which says whether the
operating system has enabled the registers of AVX, AVX-512 and AMX.
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from collections.abc import Collection, Mapping
from typing import NamedTuple

# In the calling convention of System V: rdi, rsi and rdx hold the arguments, rax the result, rbx is kept.
_CPUID = bytes.fromhex(
    "53"  # push rbx
    "89f8"  # mov eax, edi: the leaf
    "89f1"  # mov ecx, esi: the subleaf
    "4989d0"  # mov r8, rdx: where the four registers go
    "0fa2"  # cpuid
    "418900"  # mov [r8], eax
    "41895804"  # mov [r8+4], ebx
    "41894808"  # mov [r8+8], ecx
    "4189500c"  # mov [r8+12], edx
    "5b"  # pop rbx
    "c3"  # ret
)
_XGETBV = bytes.fromhex(
    "31c9"  # xor ecx, ecx: XCR0
    "0f01d0"  # xgetbv
    "48c1e220"  # shl rdx, 32
    "4809d0"  # or rax, rdx
    "c3"  # ret
)
_OSXSAVE = 1 << 27
#: The first leaf of each group says which is its last one: basic leaves, a hypervisor's, extended ones.
_GROUPS = (0, 0x40000000, 0x80000000)
_GROUP = 0xC0000000
_HYPERVISOR = 1 << 31


class Registers(NamedTuple):
    """What CPUID leaves in the four registers."""

    eax: int
    ebx: int
    ecx: int
    edx: int


class Answers(NamedTuple):
    """What a processor says.

    Parameters
    ----------
    leaves : mapping of (int, int) to Registers
        By leaf and subleaf; zeros for a leaf that the processor does not know.
    enabled : int
        The register XCR0: the sets of registers that the operating system keeps for each process.
    """

    leaves: Mapping[tuple[int, int], Registers]
    enabled: int


def ask(leaves: Collection[tuple[int, int]]) -> Answers | None:
    """Ask the processor; None where that cannot be done.

    Other processors than x86-64 have no such instructions, Windows has another calling convention, and a kernel may forbid
    memory that is both written and executed (SELinux, systemd's ``MemoryDenyWriteExecute``).
    """
    if sys.platform == "win32" or platform.machine() not in ("x86_64", "amd64") or sys.maxsize < 2**32:
        return None
    try:
        memory = mmap.mmap(
            -1,
            mmap.PAGESIZE,
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS,
            prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC,
        )
    except OSError:
        return None
    memory.write(_CPUID + _XGETBV)
    view = ctypes.c_char.from_buffer(memory)  # which keeps the memory mapped
    start = ctypes.addressof(view)
    call = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)(start)
    xgetbv = ctypes.CFUNCTYPE(ctypes.c_uint64)(start + len(_CPUID))

    def cpuid(leaf: int, subleaf: int = 0) -> Registers:
        registers = (ctypes.c_uint32 * 4)()
        call(leaf, subleaf, ctypes.addressof(registers))
        return Registers(*registers)

    highest = {group: cpuid(group).eax for group in _GROUPS}
    if not cpuid(1).ecx & _HYPERVISOR:
        highest[0x40000000] = 0
    said = {
        (leaf, subleaf): cpuid(leaf, subleaf) if leaf <= highest[leaf & _GROUP] else Registers(0, 0, 0, 0)
        for leaf, subleaf in leaves
    }
    enabled = int(xgetbv()) if cpuid(1).ecx & _OSXSAVE else 0
    return Answers(said, enabled)
