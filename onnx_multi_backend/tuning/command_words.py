# SPDX-License-Identifier: Apache-2.0
"""A setup as the words of a command line."""

from __future__ import annotations

import json
import shlex
from typing import Any

from onnx_multi_backend.presets.setup import Setup


def command_words(setup: Setup) -> str:
    """``--preset Openvino --option precision=bf16``, as a shell and then the command read it."""
    words = ["--preset", setup.preset]
    if setup.device is not None:
        words += ["--device", setup.device]
    for name, value in setup.options.items():
        words += ["--option", f"{name}={_value(value)}"]
    return shlex.join(words)


def _value(value: Any) -> str:
    """Text as a word where the command would not take it for JSON; all else as JSON."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return value
    return json.dumps(value, ensure_ascii=False)
