# SPDX-License-Identifier: Apache-2.0
"""Making a `BoundRun`: which arrays the engine reads and writes, and which are converted around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from onnx_multi_backend.engines.session import Feeds
from onnx_multi_backend.errors import InputError, UnsupportedModelError
from onnx_multi_backend.models.tensors import OBJECT, TensorInfo
from onnx_multi_backend.running.bound import BoundRun
from onnx_multi_backend.running.slots import Slot
from onnx_multi_backend.sessions.signature import Signature


class Binder(Protocol):
    """What makes a run on fixed buffers: a session."""

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """See `Session.bind`."""


def bind(
    session: Binder,
    signature: Signature,
    slots: Mapping[str, Slot],
    feeds: Mapping[str, Any],
    given: Mapping[str, Any],
    made: Sequence[Any],
    outputs_type: Callable[[Sequence[Any]], Any],
) -> BoundRun:
    """Bind a session to buffers.

    Parameters
    ----------
    slots : mapping of str to Slot
        The inputs by the engine's names.
    feeds : mapping of str to array
        Checked inputs by the engine's names.
    given : mapping of str to array
        Output buffers of the caller's, by the model's names.
    made : sequence of array
        What the engine returned for these inputs: buffers for the other outputs, and the shapes of all.
    """
    for info in (*(slots[name].info for name in feeds), *signature.outputs):
        _require_numbers(info, signature.label)
    inputs: dict[str, Any] = {}
    engine_inputs: dict[str, Any] = {}
    before, after = [], []
    for name, value in feeds.items():
        slot = slots[name]
        engine_inputs[name] = buffer = _buffer(value)
        if slot.engine_dtype is not None:
            before.append((own := buffer.astype(slot.dtype), buffer))
            inputs[slot.name] = own
        else:
            inputs[slot.name] = buffer
    engine_outputs: list[Any] = []
    outputs: dict[str, Any] = {}
    results = []
    for info, value in zip(signature.outputs, made, strict=True):
        # What an engine writes once, or not at all, is copied: an output that is an input too, or that is listed twice.
        same = inputs.get(info.name, outputs.get(info.name))
        if same is not None:
            _require_host(value, info, signature.label)
        converted = info.name in signature.output_boundary_types
        engines = _buffer(value)
        mine = engines.astype(info.dtype) if converted else engines
        if info.name in given and info.name not in outputs:
            mine = _fitting(given[info.name], mine, f"{signature.label}, output {info.name!r}")
            engines = engines if converted or _overlaps(mine, inputs.values()) else mine
        if same is not None:
            after.append((same, mine))
        elif engines is not mine:
            after.append((engines, mine))
        engine_outputs.append(engines if same is None else None)
        outputs[info.name] = mine
        results.append(mine)
    _require_apart([*outputs.items()], signature.label)
    computes = any(place is not None for place in engine_outputs)
    native = session.bind(engine_inputs, engine_outputs) if computes else _nothing
    return BoundRun(native, inputs, outputs, outputs_type(results), before, after)


def output_buffers(
    given: Any, signature: Signature, from_device: Callable[[Any], Any]
) -> tuple[dict[str, Any], str | None]:
    """The caller's output buffers by name, and the device on which those lie that the engine takes over; None where there are none.

    Parameters
    ----------
    from_device : callable
        Takes over an array on a device that the engine can write to, and returns None for what is none.

    Raises
    ------
    InputError
        There are too many or too few, or one has a name that no output has.
    """
    if given is None:
        return {}, None
    names = [o.name for o in signature.outputs]
    if not isinstance(given, Mapping):
        values = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(values) != len(names):
            raise InputError(
                f"{signature.label} has {len(names)} outputs ({', '.join(names)}); {len(values)} buffers given."
            )
        given = dict(zip(names, values, strict=True))
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"{signature.label} has no output {', '.join(map(repr, unknown))}; it has {', '.join(names)}.")
    buffers = {name: value for name, value in given.items() if value is not None}
    taken = {name: array for name, value in buffers.items() if (array := from_device(value)) is not None}
    return buffers | taken, next((str(array.device) for array in taken.values()), None)


def _require_numbers(info: TensorInfo, label: str) -> None:
    if not info.onnx_type.startswith("tensor(") or info.dtype is None or info.dtype == OBJECT:
        raise UnsupportedModelError(
            f"{label}: {info.name!r} is a {info.onnx_type}, and only tensors of numbers have fixed buffers. Use run."
        )


def _nothing() -> None:
    """The run of a model that hands its inputs on."""


def _require_host(value: Any, info: TensorInfo, label: str) -> None:
    if not isinstance(value, np.ndarray):
        raise UnsupportedModelError(
            f"{label}: output {info.name!r} is an input too, or listed twice, and is copied, which is only done on the host. "
            "Leave output_device out."
        )


def _overlaps(buffer: Any, inputs: Iterable[Any]) -> bool:
    """Whether a buffer shares memory with an input, which the engine may yet read when it has written a part of the result."""
    if not isinstance(buffer, np.ndarray):
        return False
    return any(isinstance(value, np.ndarray) and np.may_share_memory(buffer, value) for value in inputs)


def _require_apart(outputs: Sequence[tuple[str, Any]], label: str) -> None:
    """Refuse output buffers that share memory: one result would overwrite the other."""
    arrays = [(name, value) for name, value in outputs if isinstance(value, np.ndarray)]
    for i, (name, array) in enumerate(arrays):
        for other, later in arrays[i + 1 :]:
            if np.may_share_memory(array, later):
                raise InputError(f"{label}: the buffers of outputs {name!r} and {other!r} overlap. Give each its own.")


def _buffer(value: Any) -> Any:
    """The array itself where an engine can read and write its memory, else a copy."""
    if isinstance(value, np.ndarray) and not value.flags.carray:
        return np.array(value, order="C")
    return value


def _fitting(given: Any, made: Any, where: str) -> Any:
    """The caller's output buffer.

    Raises
    ------
    InputError
        The results do not fit into it.
    """
    what = f"{where}: an output buffer of dtype {made.dtype} and shape {made.shape} is wanted"
    if not isinstance(given, np.ndarray):
        if isinstance(made, np.ndarray) or type(given) is not type(made):
            raise InputError(
                f"{what}, a {type(given).__name__} given. Pass a numpy array, or on CUDA an array on the GPU."
            )
    elif not isinstance(made, np.ndarray):
        raise InputError(f"{what} on {made.device}; a numpy array was given. Leave it out, or leave out output_device.")
    elif not given.flags.carray:
        raise InputError(f"{what}, and it must be C-contiguous, aligned and writeable. Make it with numpy.empty.")
    if given.dtype != made.dtype or given.shape != made.shape:
        raise InputError(f"{what}; it has dtype {given.dtype} and shape {given.shape}.")
    return given
