# SPDX-License-Identifier: Apache-2.0
"""A preset, a device and options in one record that can be written down."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from onnx_multi_backend.errors import EnvironmentWarning, OptionError, OptionTypeError
from onnx_multi_backend.models.given import ModelLike
from onnx_multi_backend.models.graph_walk import is_quantized
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets.registry import get_preset
from onnx_multi_backend.running.prepared import PreparedModel
from onnx_multi_backend.user_warnings import warn

#: What `measured_on` calls the model, where that is another form of the one that was tuned for.
MODEL = "model"

#: What an option cannot be called: they are arguments beside the options.
NO_OPTIONS = frozenset({"model", "device", "preset", "setup"})

_FIELDS = ("preset", "device", "options", "measured_on")


@dataclass(frozen=True, eq=False)
class Setup:
    """How a model is prepared. Setups that say the same are equal, and have the same `digest` in every process.

    Parameters
    ----------
    preset : str
        A preset's name.
    device : str, optional
        The preset's default when None.
    options : mapping of str to value
        Values that JSON has a form for: numbers, strings, booleans, None, lists and mappings of these. Tuples become lists. They
        are copied: what becomes of the mapping afterwards changes nothing.
    measured_on : mapping of str to str, optional
        Where it was found to be the fastest, as `tune` notes it: the processor, the CPUs, versions of packages. `prepare` warns where
        these are different. It does not count for equality.

    Raises
    ------
    OptionTypeError
        A value is something else.
    OptionError
        An option is called as the model, the preset or the device.
    """

    preset: str
    device: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    measured_on: Mapping[str, str] = field(default_factory=dict, repr=False)
    _text: str = field(init=False, repr=False, default="{}")

    def __post_init__(self) -> None:
        if not isinstance(self.preset, str) or not isinstance(self.device, str | None):
            raise OptionTypeError(
                f"A setup has the names of a preset and a device; {self.preset!r}, {self.device!r} given."
            )
        if not isinstance(self.options, Mapping) or not all(isinstance(name, str) for name in self.options):
            raise OptionTypeError(
                f"The options of a setup are a mapping of names to values; {self.options!r} was given."
            )
        if not isinstance(self.measured_on, Mapping) or not all(
            isinstance(text, str) for pair in self.measured_on.items() for text in pair
        ):
            raise OptionTypeError(
                f"measured_on of a setup is a mapping of names to texts; {self.measured_on!r} was given."
            )
        if taken := sorted(self.options.keys() & NO_OPTIONS):
            raise OptionError(
                f"A setup for {self.preset} has no option {', '.join(taken)}: preset and device are not among its options."
            )
        try:
            for name, value in self.options.items():
                _check(self.preset, name, value)
            text = json.dumps(dict(self.options), allow_nan=False, sort_keys=True, separators=(",", ":"))
        except (ValueError, RecursionError) as error:
            raise OptionTypeError(f"A setup for {self.preset} cannot hold its options: {error}.") from error
        object.__setattr__(self, "_text", text)
        object.__setattr__(self, "options", MappingProxyType(json.loads(text)))
        object.__setattr__(self, "measured_on", MappingProxyType(dict(self.measured_on)))

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it."""
        made = {"preset": self.preset, "device": self.device, "options": json.loads(self._text)}
        return {**made, "measured_on": dict(self.measured_on)} if self.measured_on else made

    @classmethod
    def from_json(cls, values: Any) -> Setup:
        """Undo `to_json`.

        Raises
        ------
        OptionError
            It is not an object with a preset's name, or has other fields than a setup.
        """
        if not isinstance(values, Mapping) or "preset" not in values or not values.keys() <= {*_FIELDS}:
            raise OptionError(
                f"A setup is an object with {', '.join(_FIELDS)}, of which preset is needed; {values!r} was given."
            )
        return cls(**values)

    @property
    def digest(self) -> str:
        """A hexadecimal number that identifies this setup."""
        import hashlib

        return hashlib.sha256(json.dumps([self.preset, self.device, self._text]).encode()).hexdigest()[:32]

    def prepare(self, model: ModelLike, **options: Any) -> PreparedModel:
        """Prepare a model so.

        Parameters
        ----------
        **options
            Further ones, such as ``input_example``.

        Raises
        ------
        OnnxMultiBackendError
            As `Preset.prepare`; or an option is given twice.

        Warns
        -----
        EnvironmentWarning
            The setup was measured on another machine, or with other versions.
        """
        if twice := sorted({"device", *self.options} & options.keys()):
            raise OptionError(f"The setup for {self.preset} has {', '.join(twice)} already. Give it once.")
        if self.measured_on:
            self._warn_of_differences()
        if MODEL in self.measured_on and not is_quantized(load(model).proto):
            warn(
                f"The setup for {self.preset} was measured on the model in {self.measured_on[MODEL]}, and this one is not quantized. Prepare the "
                "int8 model that `tune` made: `Tuned.int8`, or what --save-model wrote.",
                EnvironmentWarning,
            )
        return get_preset(self.preset).prepare(model, self.device, **json.loads(self._text), **options)

    def _warn_of_differences(self) -> None:
        from onnx_multi_backend.host.surroundings import differences

        if found := differences({name: text for name, text in self.measured_on.items() if name != MODEL}):
            warn(
                f"The setup for {self.preset} was measured elsewhere, and another may be faster here: {'; '.join(found)}. Tune the model "
                "again.",
                EnvironmentWarning,
            )

    def __eq__(self, other: object) -> bool:
        return self.digest == other.digest if isinstance(other, Setup) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return Setup, (self.preset, self.device, json.loads(self._text), dict(self.measured_on))


def _check(preset: str, name: str, value: Any) -> None:
    """Refuse what JSON has no form for, or would change: names that are not text."""
    if isinstance(value, Mapping):
        if odd := [key for key in value if not isinstance(key, str)]:
            raise OptionTypeError(
                f"A setup for {preset} cannot hold {name}={value!r}: the name {odd[0]!r} is not a string."
            )
        parts = list(value.values())
    elif isinstance(value, list | tuple):
        parts = list(value)
    elif value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return
    else:
        raise OptionTypeError(
            f"A setup for {preset} cannot hold {name}={value!r}, which cannot be written as JSON. Pass it to prepare beside the setup."
        )
    for part in parts:
        _check(preset, name, part)
