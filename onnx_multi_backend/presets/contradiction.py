# SPDX-License-Identifier: Apache-2.0
"""Options that name the same thing twice: they agree, or an error names both."""

from __future__ import annotations

from collections.abc import Mapping

from onnx_multi_backend import option_words
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.host.devices import Device


class Unasked(str):
    """A default that gives way, without a word, to what the user says in another option."""


def refuse(preset: str, one: str, other: str) -> OptionError:
    """The error for two options that contradict each other."""
    return OptionError(f"{preset}: {one} and {other} contradict each other. Pass one of the two.")


def settled_device(
    preset: str, device: str | None, parsed: Device, option: str, given: Mapping[str, str], *, by_index: bool
) -> Device:
    """The device that the user names, in ``device`` or in an option of the provider.

    Parameters
    ----------
    device : str or None
        As it was given.
    parsed : Device
        The same, or the preset's default.
    option : str
        The provider's option that names a device; empty where it has none.
    given : mapping of str to str
        The provider's options as the user passed them.
    by_index : bool
        Whether that option is the device's number alone.

    Raises
    ------
    OptionError
        They name two devices.
    """
    named = given.get(option)
    if named is None:
        return parsed
    wanted = Device(f"{parsed.kind}:{named}") if by_index else Device(named)
    if device is None or (by_index and device == parsed.kind):
        return wanted
    if wanted.text != (f"{parsed.kind}:{parsed.index}" if by_index else parsed.text):
        raise refuse(
            preset,
            option_words.given("device", device),
            option_words.given("provider_options", {option: named}),
        )
    return parsed
