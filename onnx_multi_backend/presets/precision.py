# SPDX-License-Identifier: Apache-2.0
"""In which precision OpenVINO computes float32: in float32, unless the user asks otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from onnx_multi_backend import option_words
from onnx_multi_backend.presets.contradiction import Unasked, refuse
from onnx_multi_backend.presets.options import Option, one_of

#: OpenVINO's property.
HINT = "INFERENCE_PRECISION_HINT"

#: Without this, OpenVINO quantizes what is multiplied by int8 or 4-bit weights to int8, whatever `HINT` says: errors of 0.5 % (seen with 2025.4
#: and 2026.4 on processors with VNNI).
_UNQUANTIZED = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}

OPTION = Option(
    "precision",
    one_of("f32", "f16", "bf16", "default"),
    Unasked("f32"),
    "in which precision to compute float32; default: what OpenVINO would choose",
    positional=False,
)


POLICY = Option(
    "precision_policy",
    one_of("warn", "strict"),
    "warn",
    "what happens to float64, which OpenVINO computes in float32: a PrecisionWarning, or a refusal",
    positional=False,
)


def hint(preset: str, settings: Mapping[str, Any], elsewhere: Iterable[tuple[str, str]]) -> dict[str, str]:
    """OpenVINO's properties for the ``precision`` that is wanted; empty where OpenVINO chooses. What the user set elsewhere is left out.

    Parameters
    ----------
    elsewhere : iterable of (str, str)
        Each other option in which the user names a precision, and the ``precision`` that it stands for.

    Raises
    ------
    OptionError
        The two contradict each other.
    """
    wanted = settings.get("precision", "f32")
    others = list(elsewhere)
    for where, named in others:
        if not isinstance(wanted, Unasked) and wanted not in ("default", named):
            raise refuse(preset, option_words.given("precision", wanted), where)
    if wanted == "default":
        return {}
    return _UNQUANTIZED if others else {HINT: str(wanted), **_UNQUANTIZED}


def on_device(hint: Mapping[str, str], kind: str) -> dict[str, str]:
    """Those of the properties that a kind of device has."""
    return {name: value for name, value in hint.items() if kind != "NPU" or name not in _UNQUANTIZED}
