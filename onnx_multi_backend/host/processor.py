# SPDX-License-Identifier: Apache-2.0
"""The processor that this process runs on, an emulated one included."""

from __future__ import annotations

import functools
import platform
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from onnx_multi_backend.host import cpuid

_CPUINFO = Path("/proc/cpuinfo")
_SMT = Path("/sys/devices/system/cpu/smt/active")

#: What decides which kernels an engine takes, from the oldest to the newest.
TELLING = tuple(
    """
    sse4_1 sse4_2 avx f16c fma avx2 avx_vnni avx512f avx512bw avx512dq avx512vl avx512_vnni avx512_bf16 avx512_fp16
    amx_tile amx_int8 amx_bf16 amx_fp16 neon asimd asimdhp asimddp bf16 i8mm sve sve2 sme
    """.split()
)


_LEVELS = {
    "amx_tile": "AMX",
    "avx512f": "AVX-512",
    "avx2": "AVX2",
    "avx": "AVX",
    "sse4_2": "SSE4.2",
    "sve": "SVE",
    "asimd": "NEON",
    "neon": "NEON",
}


@dataclass(frozen=True, slots=True)
class Processor:
    """A processor, as far as an engine's results may depend on it.

    Parameters
    ----------
    vendor : str
        As CPUID says it: ``GenuineIntel``, ``AuthenticAMD``. On ARM the implementer, ``0x41``.
    family, model : int
        As Linux counts them; -1 where that is not known.
    name : str
        As its maker calls it.
    instruction_sets : frozenset of str
        Linux's flags: ``avx2``, ``avx512f``, ``amx_bf16``. One whose registers the operating system has not enabled
        is left out.
    emulator : str
        ``qemu`` where QEMU's TCG interprets the processor; empty where it is real, in a virtual machine too.
    """

    vendor: str
    family: int
    model: int
    name: str
    instruction_sets: frozenset[str]
    emulator: str = ""

    @property
    def telling(self) -> tuple[str, ...]:
        """Those of the instruction sets that decide which kernels an engine takes, oldest first."""
        return tuple(name for name in TELLING if name in self.instruction_sets)

    @property
    def level(self) -> str:
        """The widest of them in a word, ``AVX-512``; empty where none is known."""
        return next((words for flag, words in _LEVELS.items() if flag in self.instruction_sets), "")

    @property
    def identity(self) -> str:
        """Name, vendor, family and model, and what emulates it."""
        emulated = f", emulated by {self.emulator}" if self.emulator else ""
        return f"{self.name} ({self.vendor or 'vendor unknown'}, family {self.family}, model {self.model}{emulated})"

    def __str__(self) -> str:
        return f"{self.identity}: {' '.join(self.telling) or 'instruction sets unknown'}"


@functools.cache
def current() -> Processor:
    """Describe the processor of this process.

    CPUID tells; where it cannot be asked, ``/proc/cpuinfo`` does, and elsewhere (Windows, macOS on ARM) the platform's own
    words and the instruction sets that numpy found.
    """
    answers = cpuid.ask(_LEAVES)
    return _from_cpuid(answers) if answers is not None else _from_linux() or _from_python()


def runs_simultaneous_threads() -> bool:
    """Whether a core runs several threads at once; True where that is not known."""
    try:
        return _SMT.read_text(encoding="ascii").strip() != "0"
    except OSError:
        return True


class _Flag(NamedTuple):
    leaf: int
    subleaf: int
    register: str
    bit: int
    state: int = 0


# Bits of XCR0: the upper halves of ymm; masks and zmm; the tiles of AMX.
_YMM = 0b110
_ZMM = 0b11100110
_TILES = 0b11 << 17 | 0b110

#: Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2A, "CPUID", and Linux's cpufeatures.h.
_FLAGS = {
    "sse": _Flag(1, 0, "edx", 25),
    "sse2": _Flag(1, 0, "edx", 26),
    "pni": _Flag(1, 0, "ecx", 0),
    "ssse3": _Flag(1, 0, "ecx", 9),
    "fma": _Flag(1, 0, "ecx", 12, _YMM),
    "sse4_1": _Flag(1, 0, "ecx", 19),
    "sse4_2": _Flag(1, 0, "ecx", 20),
    "popcnt": _Flag(1, 0, "ecx", 23),
    "avx": _Flag(1, 0, "ecx", 28, _YMM),
    "f16c": _Flag(1, 0, "ecx", 29, _YMM),
    "bmi1": _Flag(7, 0, "ebx", 3),
    "avx2": _Flag(7, 0, "ebx", 5, _YMM),
    "bmi2": _Flag(7, 0, "ebx", 8),
    "avx512f": _Flag(7, 0, "ebx", 16, _ZMM),
    "avx512dq": _Flag(7, 0, "ebx", 17, _ZMM),
    "avx512ifma": _Flag(7, 0, "ebx", 21, _ZMM),
    "avx512cd": _Flag(7, 0, "ebx", 28, _ZMM),
    "avx512bw": _Flag(7, 0, "ebx", 30, _ZMM),
    "avx512vl": _Flag(7, 0, "ebx", 31, _ZMM),
    "avx512vbmi": _Flag(7, 0, "ecx", 1, _ZMM),
    "avx512_vbmi2": _Flag(7, 0, "ecx", 6, _ZMM),
    "gfni": _Flag(7, 0, "ecx", 8),
    "vaes": _Flag(7, 0, "ecx", 9, _YMM),
    "vpclmulqdq": _Flag(7, 0, "ecx", 10, _YMM),
    "avx512_vnni": _Flag(7, 0, "ecx", 11, _ZMM),
    "avx512_bitalg": _Flag(7, 0, "ecx", 12, _ZMM),
    "avx512_vpopcntdq": _Flag(7, 0, "ecx", 14, _ZMM),
    "avx512_vp2intersect": _Flag(7, 0, "edx", 8, _ZMM),
    "amx_bf16": _Flag(7, 0, "edx", 22, _TILES),
    "avx512_fp16": _Flag(7, 0, "edx", 23, _ZMM),
    "amx_tile": _Flag(7, 0, "edx", 24, _TILES),
    "amx_int8": _Flag(7, 0, "edx", 25, _TILES),
    "avx_vnni": _Flag(7, 1, "eax", 4, _YMM),
    "avx512_bf16": _Flag(7, 1, "eax", 5, _ZMM),
    "amx_fp16": _Flag(7, 1, "eax", 21, _TILES),
    "avx_ifma": _Flag(7, 1, "eax", 23, _YMM),
    "avx_vnni_int8": _Flag(7, 1, "edx", 4, _YMM),
    "avx_ne_convert": _Flag(7, 1, "edx", 5, _YMM),
    "avx_vnni_int16": _Flag(7, 1, "edx", 10, _YMM),
}

_BRAND = (0x80000002, 0x80000003, 0x80000004)
_HYPERVISOR = (0x40000000, 0)
_LEAVES = {
    (0, 0),
    _HYPERVISOR,
    *((leaf, 0) for leaf in _BRAND),
    *((flag.leaf, flag.subleaf) for flag in _FLAGS.values()),
}


def _from_cpuid(answers: cpuid.Answers) -> Processor:
    leaves, enabled = answers
    first, signature = leaves[0, 0], leaves[1, 0].eax
    vendor = b"".join(part.to_bytes(4, "little") for part in (first.ebx, first.edx, first.ecx))
    family, model = signature >> 8 & 0xF, signature >> 4 & 0xF
    if family in (6, 15):
        model |= signature >> 12 & 0xF0
    if family == 15:
        family += signature >> 20 & 0xFF
    brand = b"".join(part.to_bytes(4, "little") for leaf in _BRAND for part in leaves[leaf, 0])
    found = {
        name
        for name, flag in _FLAGS.items()
        if getattr(leaves[flag.leaf, flag.subleaf], flag.register) >> flag.bit & 1
        and enabled & flag.state == flag.state
    }
    emulator = "qemu" if _words(leaves[_HYPERVISOR]) == _TCG else ""
    return Processor(_text(vendor), family, model, _text(brand), frozenset(found), emulator)


#: How QEMU signs when it interprets instructions; with KVM, on the processor itself, it signs otherwise.
_TCG = b"TCGTCGTCGTCG"


def _words(said: cpuid.Registers) -> bytes:
    return b"".join(part.to_bytes(4, "little") for part in said[1:])


def _text(said: bytes) -> str:
    return said.partition(b"\0")[0].decode("ascii", "replace").strip()


def _from_linux() -> Processor | None:
    """Read the first processor that Linux lists, on x86 or ARM."""
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].splitlines()
    except OSError:
        return None
    said = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    flags = said.get("flags", said.get("Features"))
    if flags is None:
        return None
    return Processor(
        said.get("vendor_id", said.get("CPU implementer", "")),
        _number(said.get("cpu family", said.get("CPU architecture", ""))),
        _number(said.get("model", said.get("CPU part", ""))),
        said.get("model name", "") or platform.processor() or platform.machine(),
        frozenset(flags.split()),
    )


def _number(text: str) -> int:
    return int(text, 0) if re.fullmatch(r"\d+|0x[0-9a-fA-F]+", text) else -1


_V2 = "sse sse2 pni ssse3 sse4_1 sse4_2 popcnt"
_V4 = "avx512f avx512cd avx512bw avx512dq avx512vl"
_ICE_LAKE = "avx512_vnni avx512ifma avx512vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq gfni vaes vpclmulqdq"

#: numpy's names, those of its groups (numpy 2.4) and those of single instruction sets, in Linux's words.
_OF_NUMPY = {
    "X86_V2": _V2,
    "X86_V3": "avx avx2 fma f16c bmi1 bmi2",
    "X86_V4": _V4,
    "SSE41": "sse4_1",
    "SSE42": "sse4_2",
    "SSE3": "pni",
    "FMA3": "fma",
    "AVX512_SKX": _V4,
    "AVX512_CLX": "avx512_vnni",
    "AVX512_ICL": _ICE_LAKE,
    "AVX512_SPR": "avx512_fp16 avx512_bf16",
    "ASIMDHP": "asimdhp",
}


def _from_python() -> Processor:
    """The words of the platform module; on Windows ``Intel64 Family 6 Model 85 Stepping 7, GenuineIntel``."""
    said = platform.processor() or platform.machine()
    described = re.search(r"Family (\d+) Model (\d+) Stepping \d+, (\w+)", said)
    family, model, vendor = described.groups() if described else ("-1", "-1", "")
    config: Any = np.show_config(mode="dicts")
    simd = config.get("SIMD Extensions", {}) if isinstance(config, dict) else {}
    found = [*simd.get("baseline", ()), *simd.get("found", ())]
    flags = {flag for name in found for flag in _OF_NUMPY.get(name, name.lower()).split()}
    return Processor(vendor, int(family), int(model), said, frozenset(flags))
