# SPDX-License-Identifier: Apache-2.0
"""Values of OpenVINO's properties, which OpenVINO takes of any type and drops without a word where it knows none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from onnx_multi_backend.errors import OptionTypeError

_SIMPLE = (bool, int, float, str)


def check_property(preset: str, name: str, value: Any) -> Any:
    """Hold a property's value to the types that OpenVINO reads.

    Returns
    -------
    object
        The value, a number of numpy's as Python's own.

    Raises
    ------
    OptionTypeError
    """
    if isinstance(value, np.generic):
        value = value.item()
    if not _readable(value):
        raise OptionTypeError(
            f"{preset}: {name} is a number, a word or one of OpenVINO's own values; {value!r} was given, which OpenVINO would "
            "drop without a word. Correct the value, or leave the property out."
        )
    return value


def _readable(value: Any) -> bool:
    if isinstance(value, _SIMPLE) or type(value).__module__.partition(".")[0] == "openvino":
        return True
    if isinstance(value, Mapping):  # DEVICE_PROPERTIES: those of each device
        return all(isinstance(name, str) and _readable(inner) for name, inner in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):  # policies, and the callbacks that encrypt a cache
        return all(callable(v) or type(v).__module__.partition(".")[0] == "openvino" for v in value)
    return False


def word(value: Any) -> str:
    """The word that a property's value stands for: OpenVINO's own types and constants have one too."""
    if hasattr(value, "get_type_name"):
        return str(value.get_type_name())
    return str(value).rpartition(".")[2] if type(value).__module__.startswith("openvino") else str(value)
