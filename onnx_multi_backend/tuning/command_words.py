# SPDX-License-Identifier: Apache-2.0
"""A setup as the words of a command line."""

from __future__ import annotations

import shlex

from onnx_multi_backend import option_words
from onnx_multi_backend.presets.setup import Setup


def command_words(setup: Setup) -> str:
    """``--preset Openvino --option precision=bf16``, as a shell and then the command read it."""
    words = ["--preset", setup.preset]
    if setup.device is not None:
        words += ["--device", setup.device]
    for name, value in setup.options.items():
        words += ["--option", f"{name}={option_words.json_or_word(value)}"]
    return shlex.join(words)
