# SPDX-License-Identifier: Apache-2.0
"""What optimizers leave out before they look for patterns: nodes that pass a value on."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from onnx_multi_backend.models.contents import Contents

#: A Cast may change no type.
LEFT_OUT = ("Cast", "Dropout", "Identity")


def passed_on(contents: Contents, operators: Iterable[str] = LEFT_OUT) -> dict[str, str]:
    """What nodes of these operators make, by its name: what it is made of first."""
    return {node.output[0]: node.input[0] for node in contents.of(*operators) if node.input and node.output}


def source(name: str, passed: Mapping[str, str], until: Container[str] = ()) -> str:
    """What a value is made of, back to the first of those at which the search ends."""
    seen = set()  # names are those of several graphs
    while name not in until and name in passed and name not in seen:
        seen.add(name)
        name = passed[name]
    return name
