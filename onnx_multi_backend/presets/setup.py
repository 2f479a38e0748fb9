# SPDX-License-Identifier: Apache-2.0
"""A preset, a device and options in one record that can be written down."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from onnx_multi_backend.errors import OptionError, OptionTypeError
from onnx_multi_backend.models.loading import ModelLike
from onnx_multi_backend.presets.registry import get_preset
from onnx_multi_backend.running.prepared import PreparedModel

_FIELDS = ("preset", "device", "options")


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
        Values that JSON has a form for: numbers, strings, booleans, None, lists and mappings of these. Tuples become lists.

    Raises
    ------
    OptionTypeError
        A value is something else.
    """

    preset: str
    device: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.preset, str) or not isinstance(self.device, str | None):
            raise OptionTypeError(
                f"A setup has the names of a preset and a device; {self.preset!r}, {self.device!r} given."
            )
        if not isinstance(self.options, Mapping) or not all(isinstance(name, str) for name in self.options):
            raise OptionTypeError(
                f"The options of a setup are a mapping of names to values; {self.options!r} was given."
            )
        kept = {}
        for name, value in self.options.items():
            try:
                kept[name] = json.loads(json.dumps(value, allow_nan=False))
            except (TypeError, ValueError) as error:
                raise OptionTypeError(
                    f"A setup for {self.preset} cannot hold {name}={value!r}, which JSON has no form for ({error}). Pass it to "
                    "prepare beside the setup."
                ) from error
        object.__setattr__(self, "options", MappingProxyType(kept))

    def to_json(self) -> dict[str, Any]:
        """As `from_json` reads it."""
        return {"preset": self.preset, "device": self.device, "options": dict(self.options)}

    @classmethod
    def from_json(cls, values: Any) -> Setup:
        """Undo `to_json`. Fields that others have added are left alone.

        Raises
        ------
        OptionError
            It is not an object with a preset's name.
        """
        if not isinstance(values, Mapping) or "preset" not in values:
            raise OptionError(
                f"A setup is an object with {', '.join(_FIELDS)}, of which preset is needed; {values!r} was given."
            )
        return cls(**{name: values[name] for name in _FIELDS if name in values})

    @property
    def digest(self) -> str:
        """A hexadecimal number that tells this setup from all others."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

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
        """
        if twice := sorted(self.options.keys() & options.keys()):
            raise OptionError(f"The setup for {self.preset} has {', '.join(twice)} already. Give it once.")
        return get_preset(self.preset).prepare(model, self.device, **self.options, **options)

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Setup) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.digest)

    def __reduce__(self) -> tuple[Any, ...]:
        return Setup, (self.preset, self.device, dict(self.options))
