# SPDX-License-Identifier: Apache-2.0
"""What an engine's results become: of the declared types, chosen by name where the caller wants only some, in a named tuple."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from onnx_multi_backend.engines.session import Value
from onnx_multi_backend.errors import OptionError, UnsupportedModelError
from onnx_multi_backend.running.outputs import outputs_type
from onnx_multi_backend.sessions.signature import Signature


class Results:
    """Makes what a run returns.

    Attributes
    ----------
    named : callable
        Makes the named tuple of all outputs from their values.
    narrows : bool
        Whether the engine makes some outputs in a wider type than the declared one, so that `narrowed` is to be called.
    """

    def __init__(self, signature: Signature) -> None:
        self._outputs = signature.outputs
        self._label = signature.label
        self._narrow = [(i, o.dtype) for i, o in enumerate(self._outputs) if o.name in signature.output_boundary_types]
        self.narrows = bool(self._narrow)
        made = outputs_type(tuple(o.name for o in self._outputs))
        self.named = functools.partial(tuple.__new__, made)  # what its own _make comes to, without a call between

    def narrowed(self, results: Sequence[Value]) -> list[Value]:
        """The results, each in its declared type."""
        narrowed = list(results)
        for i, dtype in self._narrow:
            if not isinstance(results[i], np.ndarray):
                raise UnsupportedModelError(
                    f"{self._label}: the engine makes output {self._outputs[i].name!r} in a wider type, and only on the host it "
                    "becomes the declared one. Leave output_device out."
                )
            narrowed[i] = results[i].astype(dtype)
        return narrowed

    def selected(self, names: Any, results: tuple[Value, ...]) -> tuple[Value, ...]:
        """The outputs with these names, in this order; all where `names` is None."""
        if names is None:
            return results
        made = {output.name: i for i, output in enumerate(self._outputs)}
        try:
            wanted = [names] if isinstance(names, str) else list(names)
        except TypeError:  # no iterable, as a number
            wanted = [names]
        if not all(isinstance(name, str) for name in wanted):
            raise OptionError(
                f"{self._label}: of two arguments to run the first names outputs, which are strings; {type(names).__name__} given. "
                "Pass several inputs as one list: run([a, b])."
            )
        if unknown := [name for name in wanted if name not in made]:
            raise OptionError(
                f"{self._label} has no output {', '.join(map(repr, unknown))}; it has {', '.join(map(repr, made))}. Name these, or "
                "None for all."
            )
        return outputs_type(tuple(wanted))(*(results[made[name]] for name in wanted))
