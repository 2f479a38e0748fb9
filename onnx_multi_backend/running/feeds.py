# SPDX-License-Identifier: Apache-2.0
"""The three forms of inputs (one array, a sequence in input order, a mapping by name), checked against the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from onnx_multi_backend.errors import InputError
from onnx_multi_backend.host.devices import similar
from onnx_multi_backend.models.tensors import TensorInfo, numpy_dtype
from onnx_multi_backend.running.converting import adopted_array, convert
from onnx_multi_backend.running.slots import Slot
from onnx_multi_backend.sessions.signature import Signature

#: Takes over an array on a device; None for anything that the host can read.
Adopt = Callable[[Any], Any]


class DeviceFeeds(dict[str, Any]):
    """Feeds of which some lie on a device."""


_ARRAY = np.ndarray


class FeedMaker:
    """Turns what a user passes to `run` into what an engine is fed.

    Parameters
    ----------
    signature : Signature
        Inputs with a default can be given by name.
    adopt : callable or None
        Takes over what lies on a device where the engine can read it, and returns None for what does not.

    Attributes
    ----------
    by_engine_name : dict of str to Slot
    """

    def __init__(self, signature: Signature, from_device: Adopt | None = None) -> None:
        def slot(info: TensorInfo) -> Slot:
            edge = signature.input_boundary_types.get(info.name)
            return Slot(info, edge.engine_name, numpy_dtype(edge.elem_type)) if edge else Slot(info, info.name, None)

        self._slots = slots = tuple(map(slot, signature.inputs))
        overridable = map(slot, signature.overridable)
        self._by_name = {s.name: s for s in (*slots, *overridable)}
        self.by_engine_name = {s.engine_name: s for s in self._by_name.values()}
        self._adopt = from_device
        self._required = {s.name for s in slots}
        self._label = signature.label
        self._only = self._slots[0] if len(self._slots) == 1 and self._slots[0].fast else None
        self._all_fast = all(s.fast for s in self._slots)

    def __call__(self, inputs: Any) -> dict[str, Any]:
        """Check inputs and name them as the engine does.

        Raises
        ------
        InputError
            Too few or too many, an unknown or missing name, a wrong dtype, rank or fixed dimension, or None where the
            model has no optional.
        """
        kind = type(inputs)
        only = self._only
        if only is not None:
            if kind is _ARRAY:
                value = inputs
            elif kind is dict:
                value = inputs.get(only.name) if len(inputs) == 1 else None
            else:
                value = inputs[0] if (kind is list or kind is tuple) and len(inputs) == 1 else None
            if (
                type(value) is _ARRAY
                and value.dtype is only.dtype
                and (value.shape == only.exact or only.shape_fits(value.shape))
            ):
                return {only.engine_name: value}
        elif self._all_fast and kind in (list, tuple, dict) and len(inputs) == len(self._slots):
            feeds = {}
            for i, slot in enumerate(self._slots):
                value = inputs.get(slot.name) if kind is dict else inputs[i]
                if type(value) is not _ARRAY or value.dtype is not slot.dtype or not slot.shape_fits(value.shape):
                    break
                feeds[slot.engine_name] = value
            else:
                return feeds
        return self._with_care(inputs)

    def _with_care(self, inputs: Any) -> dict[str, Any]:
        named = self._named(inputs)
        unknown = [name for name in named if name not in self._by_name]
        if unknown:
            raise InputError(
                f"{self._label} has no input {', '.join(map(repr, unknown))}.{similar(str(unknown[0]), self._by_name)} "
                f"Its inputs are {self._list_inputs()}."
            )
        missing = [s.name for s in self._slots if s.name not in named]
        if missing:
            raise InputError(
                f"{self._label}: {'input' if len(missing) == 1 else 'inputs'} {', '.join(map(repr, missing))} missing. "
                f"Its inputs are {self._list_inputs()}."
            )
        feeds: dict[str, Any] = {}
        adopted = False
        for name, value in named.items():
            slot = self._by_name[name]
            array = self._adopt(value) if self._adopt is not None else None
            if array is not None:
                adopted = True
                feeds[slot.engine_name] = adopted_array(array, slot, f"{self._label}, input {name!r}")
            else:
                feeds[slot.engine_name] = convert(value, slot, self._label)
        return DeviceFeeds(feeds) if adopted else feeds

    def _named(self, inputs: Any) -> Mapping[str, Any]:
        if isinstance(inputs, Mapping):
            return inputs
        values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(values) != len(self._slots):
            form = f"{len(values)} given" if isinstance(inputs, (list, tuple)) else "a single value given"
            raise InputError(
                f"{self._label} takes {len(self._slots)} input{'' if len(self._slots) == 1 else 's'}, {form}. Pass "
                f"a list in this order, or a mapping by name: {self._list_inputs()}."
            )
        return {slot.name: value for slot, value in zip(self._slots, values, strict=True)}

    def _list_inputs(self) -> str:
        return "; ".join(str(s.info) for s in self._by_name.values()) or "none"
