# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's words where it refuses a model for a rank that it does not know before the model runs."""

from __future__ import annotations

import re

_WORDS = re.compile(r"rank has to be known|with dynamic rank|rank\(\)\.is_static\(\)|rank must be static")


def wants_ranks(refusal: str) -> bool:
    """Whether these are such words."""
    return _WORDS.search(refusal) is not None
