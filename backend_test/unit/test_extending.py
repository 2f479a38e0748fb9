# SPDX-License-Identifier: Apache-2.0
"""docs/extending.md names what the author of a preset may set."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import onnx_multi_backend as omb

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"
#: What answers users; presets may answer otherwise, but need not.
ANSWERS = {"prepare", "compatibility", "supports_device", "availability"}


def overridden() -> Iterator[str]:
    """What the presets of this package set, of what `Preset` has."""
    for preset in omb.presets().values():
        for base in preset.__mro__[: preset.__mro__.index(omb.Preset)]:
            yield from (name for name in vars(base) if not name.startswith("__") and hasattr(omb.Preset, name))


def test_all_that_a_preset_may_set_is_listed() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("### What a preset may set") : text.index("## A rule")]
    listed = set(re.findall(r"`(\w+)[(`]", table))
    declared = {name for name in omb.Preset.__annotations__ if not name.startswith("__")}
    assert declared <= listed
    assert set(overridden()) - ANSWERS <= listed
