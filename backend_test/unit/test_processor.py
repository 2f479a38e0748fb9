# SPDX-License-Identifier: Apache-2.0
"""Which processor this process runs on, emulated or not."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from onnx_multi_backend.host import cpuid, processor
from onnx_multi_backend.host.cpuid import Answers, Registers

X86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="CPUID is an instruction of x86")

#: Where numpy and Linux have other names for the same.
NUMPY = {
    "SSE41": "sse4_1",
    "SSE42": "sse4_2",
    "FMA3": "fma",
    "F16C": "f16c",
    "AVX": "avx",
    "AVX2": "avx2",
    "AVX512F": "avx512f",
    "AVX512CD": "avx512cd",
    "AVX512BW": "avx512bw",
    "AVX512DQ": "avx512dq",
    "AVX512VL": "avx512vl",
    "AVX512IFMA": "avx512ifma",
    "AVX512VBMI": "avx512vbmi",
    "AVX512VNNI": "avx512_vnni",
    "AVX512VBMI2": "avx512_vbmi2",
    "AVX512BITALG": "avx512_bitalg",
}


@X86
def test_the_instruction_sets_are_those_that_numpy_finds() -> None:
    """numpy asks CPUID and XGETBV in C, so the two agree under emulation as well."""
    features = pytest.importorskip("numpy._core._multiarray_umath").__cpu_features__
    found = processor.current().instruction_sets
    assert {name for name in NUMPY if features[name]} == {name for name, flag in NUMPY.items() if flag in found}
    assert "sse4_1" in found or not features["SSE41"]


@X86
def test_the_processor_is_the_one_that_linux_lists(request: pytest.FixtureRequest) -> None:
    here, listed = processor.current(), processor._from_linux()
    if listed is None:
        pytest.skip("there is no /proc/cpuinfo")
    if here.name != listed.name:
        pytest.skip(f"emulated: this process runs on {here.name}, Linux lists {listed.name}")
    assert (here.vendor, here.family, here.model) == (listed.vendor, listed.family, listed.model)
    assert here.instruction_sets <= listed.instruction_sets
    assert here.telling == listed.telling


@X86
def test_registers_that_the_operating_system_has_not_enabled_do_not_count() -> None:
    every = Registers(*[0xFFFFFFFF] * 4)
    leaves = dict.fromkeys(processor._LEAVES, every) | {
        (0, 0): Registers(7, *(int.from_bytes(w, "little") for w in (b"Genu", b"ntel", b"ineI")))
    }
    sse_alone = processor._from_cpuid(Answers(leaves, 0b1))
    assert sse_alone.vendor == "GenuineIntel"
    assert sse_alone.telling == ("sse4_1", "sse4_2")
    with_ymm = processor._from_cpuid(Answers(leaves, 0b111))
    assert with_ymm.telling == ("sse4_1", "sse4_2", "avx", "f16c", "fma", "avx2", "avx_vnni")
    with_zmm = processor._from_cpuid(Answers(leaves, 0b11100111))
    assert "avx512f" in with_zmm.instruction_sets
    assert "amx_tile" not in with_zmm.instruction_sets
    assert "amx_tile" in processor._from_cpuid(Answers(leaves, 0b11 << 17 | 0b11100111)).instruction_sets


@pytest.mark.parametrize(
    ("signature", "family", "model"),
    [
        (0x000306C3, 6, 60),  # Haswell
        (0x000806F8, 6, 143),  # Sapphire Rapids
        (0x00800F12, 23, 1),  # Zen
        (0x00B00F21, 26, 2),  # Zen 5
    ],
)
def test_family_and_model_are_counted_as_linux_counts_them(signature: int, family: int, model: int) -> None:
    nothing = Registers(0, 0, 0, 0)
    leaves = dict.fromkeys(processor._LEAVES, nothing) | {(1, 0): Registers(signature, 0, 0, 0)}
    found = processor._from_cpuid(Answers(leaves, 0))
    assert (found.family, found.model) == (family, model)
    assert str(found) == f" (vendor unknown, family {family}, model {model}): instruction sets unknown"


@X86
def test_where_executable_memory_is_forbidden_linux_is_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*args: object, **kwargs: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    listed = processor._from_linux()
    if listed is None:
        pytest.skip("there is no /proc/cpuinfo")
    monkeypatch.setattr(cpuid.mmap, "mmap", forbidden)
    assert cpuid.ask([(0, 0)]) is None
    assert processor.current.__wrapped__() == listed


def test_an_arm_processor_is_told_by_its_features(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(
        "processor\t: 0\nFeatures\t: fp asimd asimdhp asimddp sve\nCPU implementer\t: 0x41\n"
        "CPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd40\n\nprocessor\t: 1\nFeatures\t: fp\n"
    )
    monkeypatch.setattr(processor, "_CPUINFO", info)
    found = processor._from_linux()
    assert found is not None
    assert (found.vendor, found.family, found.model) == ("0x41", 8, 0xD40)
    assert found.telling == ("asimd", "asimdhp", "asimddp", "sve")


def test_elsewhere_the_platform_and_numpy_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    words = "Intel64 Family 6 Model 85 Stepping 7, GenuineIntel"
    monkeypatch.setattr(platform, "processor", lambda: words)
    found = processor._from_python()
    assert (found.vendor, found.family, found.model, found.name) == ("GenuineIntel", 6, 85, words)
    if platform.machine() in ("x86_64", "AMD64"):
        assert found.instruction_sets
        assert found.instruction_sets <= processor.current().instruction_sets
