# SPDX-License-Identifier: Apache-2.0
"""A message names options as they are written where it is read."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from onnx_multi_backend import option_words
from onnx_multi_backend.cli import arguments

VALUES: list[tuple[str, Any]] = [
    ("adapt", False),
    ("cache_dir", "a folder"),
    ("precision_policy", "strict"),
    ("time_limit", 1.5),
    ("time_limit", None),
    ("session_options", {"log_severity_level": 0}),
    ("input_shapes", {"x": [1, 3, None]}),
    ("plugin", 'it\'s "one"\\'),
    ("plugin", "1"),
    ("plugin", "null"),
]


@pytest.mark.parametrize(("name", "value"), VALUES)
def test_words_mean_what_they_say(name: str, value: Any) -> None:
    assert eval(f"dict({option_words.given(name, value)})") == {name: value}
    with option_words.of_command_line():
        option, words = shlex.split(option_words.given(name, value))
    assert option == "--option"
    assert arguments.parse_options([words], None) == {name: value}


def test_the_commands_own_options() -> None:
    written = [("fallback", "none"), ("device", "CUDA:0"), ("static_shapes", True), ("min_cosine", 0.9)]
    name = option_words.Placeholder("NAME")
    assert option_words.given("preset", name) == "preset=NAME"
    assert option_words.named("min_cosine") == "min_cosine"
    with option_words.of_command_line():
        shown = [option_words.given(*pair) for pair in written]
        assert option_words.given("preset", name) == "--preset NAME"
        assert option_words.given("provider_name", name) == "--option provider_name=NAME"
        assert option_words.named("min_cosine") == "--min-cosine"
    assert shown == ["--fallback none", "--device CUDA:0", "--static-shapes", "--min-cosine 0.9"]
    assert option_words.given(*written[0]) == "fallback='none'"


def test_a_command_within_a_command_ends_alone() -> None:
    with option_words.of_command_line():
        with option_words.of_command_line():
            pass
        assert option_words.literal(None) == "null"
    assert option_words.literal(None) == "None"
