# SPDX-License-Identifier: Apache-2.0
"""One ``when`` for everything that holds on some hosts alone: expectations, defects of engines, layers that survive an export.

A mapping of subjects to what is wanted of them, all of which must hold:

``platform``
    Python's name of it: ``linux``, ``win32``, ``darwin``.
``instruction_set``
    Linux's flags (`processor.TELLING`), with commas between them, all of which must be there; with ``!`` one that must not: ``avx2,!avx512f``.
``vendor``
    The processor's, as CPUID says it: ``GenuineIntel``, ``AuthenticAMD``.
``emulator``
    ``qemu``, where QEMU interprets the processor: for what QEMU gets wrong.
anything else
    A package and its releases: ``openvino = ">=2026.4,<2027"``. One that is not installed has none.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnx_multi_backend.host.processor import Processor

When = Mapping[str, str]


def fault(when: Any) -> str:
    """Say what is wrong with a ``when`` that somebody wrote; empty where nothing is."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    from onnx_multi_backend.host import processor

    if not isinstance(when, Mapping) or not all(isinstance(v, str) and v.strip() for v in when.values()):
        return "when must be a table of strings, such as {onnxruntime = '>=1.31', platform = 'linux'}"
    for subject, wanted in when.items():
        if subject == "instruction_set":
            flags = {word.strip().removeprefix("!") for word in wanted.split(",")}
            if unknown := sorted(flags - set(processor.TELLING)):
                return (
                    f"when: instruction_set = {wanted!r} has {', '.join(map(repr, unknown))}; "
                    f"known are {', '.join(processor.TELLING)}, each with ! for one that must not be there"
                )
        elif subject not in ("platform", "vendor", "emulator"):
            try:
                SpecifierSet(wanted)
            except InvalidSpecifier:
                return f"when: {subject} = {wanted!r} is not a version specifier, such as '>=1.31,<1.32'"
    return ""


def applies(when: When, on: Processor | None = None, inside: Mapping[str, str] | None = None) -> bool:
    """Whether all of a ``when`` holds here.

    Parameters
    ----------
    when : mapping of str to str
        One in which `fault` finds nothing.
    on : Processor, optional
        Another processor than this one; packages and platform are this host's anyway.
    inside : mapping of str to str, optional
        Releases that count instead of the installed ones: an execution provider may hold another OpenVINO.
    """
    from onnx_multi_backend.host import processor

    return _applies(tuple(sorted(when.items())), on or processor.current(), tuple((inside or {}).items()))


def describe(when: When) -> str:
    """Write a ``when`` for a message: ``openvino >=2026.4, instruction_set avx512f``."""
    return ", ".join(f"{subject} {wanted}" for subject, wanted in when.items()) or "everywhere"


@functools.lru_cache(maxsize=1024)
def _applies(when: tuple[tuple[str, str], ...], on: Processor, inside: tuple[tuple[str, str], ...]) -> bool:
    return all(_holds(subject, wanted, on, dict(inside)) for subject, wanted in when)


def _holds(subject: str, wanted: str, on: Processor, inside: Mapping[str, str]) -> bool:
    if subject == "platform":
        return sys.platform == wanted
    if subject in ("vendor", "emulator"):
        return bool(getattr(on, subject) == wanted)
    if subject == "instruction_set":
        flags = [flag.strip() for flag in wanted.split(",")]
        return all((flag.removeprefix("!") in on.instruction_sets) != flag.startswith("!") for flag in flags)
    from onnx_multi_backend.host.versions import fits, installed_version

    version = inside.get(subject) or installed_version(subject)
    return version is not None and fits(version, wanted)
