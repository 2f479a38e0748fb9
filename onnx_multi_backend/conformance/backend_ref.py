# SPDX-License-Identifier: Apache-2.0
"""A backend by its dotted path, so that every process can import it for itself."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from onnx_multi_backend.conformance.foreign import describe_error
from onnx_multi_backend.errors import OnnxMultiBackendError, OptionError

_NEEDED = ("prepare", "supports_device")


class BackendLoadError(OnnxMultiBackendError, ImportError):
    """A dotted path leads to no backend that can be used here; the message says why."""


@dataclass(frozen=True)
class BackendRef:
    """A backend to run, and how.

    Parameters
    ----------
    path : str
        The dotted path of a module, or of a class in one, that follows `onnx.backend.base`: ``onnxruntime.backend``.
    name : str
        Its name in reports; by default the path.
    devices : tuple of str, default ("CPU",)
        The devices to run each case on, as ONNX names them.
    options : mapping of str to value
        Passed to every ``prepare``.
    """

    path: str
    name: str = ""
    devices: tuple[str, ...] = ("CPU",)
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.path)

    @property
    def options_as_json(self) -> dict[str, Any]:
        """The options; a value that JSON has no form for, as its ``repr``."""
        return {name: _as_json(value) for name, value in self.options.items()}

    @classmethod
    def of(cls, backend: Any, **kwargs: Any) -> BackendRef:
        """Make a reference to a module or a class; it must be importable by its own name.

        Raises
        ------
        OptionError
            It is neither.
        """
        if isinstance(backend, ModuleType):
            return cls(backend.__name__, **kwargs)
        if not isinstance(backend, type):
            raise OptionError(f"{backend!r} is neither a module nor a class: give the dotted path that leads to it.")
        return cls(f"{backend.__module__}.{backend.__qualname__}", **kwargs)

    def load(self) -> Any:
        """Import the backend.

        Raises
        ------
        BackendLoadError
            There is no such module, it cannot be imported, or what is there is not a backend.
        """
        module, rest = _import_longest(self.path)
        found: Any = module
        for name in rest:
            if not hasattr(found, name):
                raise BackendLoadError(f"{self.path!r}: {getattr(found, '__name__', found)!r} has no {name!r}.")
            found = getattr(found, name)
        missing = [name for name in _NEEDED if not callable(getattr(found, name, None))]
        if missing:
            raise BackendLoadError(
                f"{self.path!r} has no {' and no '.join(missing)}. Give the dotted path of a module or class that "
                "follows onnx.backend.base."
            )
        return found

    def load_for_devices(self) -> Any:
        """Import the backend, and ask it for the devices: without them, every case would be skipped.

        Raises
        ------
        BackendLoadError
            It cannot be imported, or does not support one of the devices.
        """
        backend = self.load()
        for device in self.devices:
            try:
                supported = backend.supports_device(device)
            except (Exception, SystemExit) as error:  # whatever a foreign backend raises
                raise BackendLoadError(
                    f"{self.path!r}: supports_device({device!r}) raised {describe_error(error)}."
                ) from error
            if not supported:
                raise BackendLoadError(f"{self.path!r} does not support the device {device!r} here. Name another one.")
        return backend


def _as_json(value: Any) -> Any:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return repr(value)
    return value


def _import_longest(path: str) -> tuple[ModuleType, list[str]]:
    """Import as much of a dotted path as is a module; return it and the names that are left."""
    words = path.split(".")
    if not all(word.isidentifier() for word in words):
        raise BackendLoadError(f"{path!r} is not a dotted path, such as 'package.module' or 'package.module.Class'.")
    for end in range(len(words), 0, -1):
        name = ".".join(words[:end])
        try:
            return importlib.import_module(name), words[end:]
        except ModuleNotFoundError as error:
            if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                raise BackendLoadError(f"{path!r} cannot be imported: {error}.") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever a foreign module raises: sys.exit() and pytest.skip() too
            raise BackendLoadError(f"{path!r} cannot be imported: {describe_error(error)}.") from error
    raise BackendLoadError(f"{path!r}: there is no module {words[0]!r} here.")
