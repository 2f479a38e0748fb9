# SPDX-License-Identifier: Apache-2.0
"""What reports and baselines keep of a processor, and how two of them differ."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.conformance.reading import take, take_texts
from onnx_multi_backend.host.processor import Processor


def to_dict(processor: Processor) -> dict[str, Any]:
    """Return a processor as JSON has it, with its relevant instruction sets; `from_dict` is the way back."""
    return {
        "name": processor.name,
        "vendor": processor.vendor,
        "family": processor.family,
        "model": processor.model,
        "instruction_sets": list(processor.telling),
        "emulator": processor.emulator,
    }


def from_dict(values: Any) -> Processor:
    """Rebuild a processor from what `to_dict` returned.

    Raises
    ------
    KeyError, TypeError
        It is malformed.
    """
    return Processor(
        take(values, "vendor", str),
        take(values, "family", int),
        take(values, "model", int),
        take(values, "name", str),
        frozenset(take_texts(values, "instruction_sets")),
        take(values, "emulator", str),
    )


def difference(old: Processor | None, new: Processor | None) -> str:
    """Say how two processors differ, in one line; empty where they do not, or where one is not known."""
    if old is None or new is None:
        return ""
    words = []
    if old.identity != new.identity:
        words.append(f"was {old.identity}, is {new.identity}")
    if gone := [name for name in old.telling if name not in new.instruction_sets]:
        words.append(f"without {' '.join(gone)}")
    if more := [name for name in new.telling if name not in old.instruction_sets]:
        words.append(f"with {' '.join(more)}")
    return f"another processor: {', '.join(words)}" if words else ""
