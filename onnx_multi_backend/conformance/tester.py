# SPDX-License-Identifier: Apache-2.0
"""What someone who writes a backend asks of it: which operators, which devices, and what preparing once saves."""

from __future__ import annotations

import os
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import ModelProto

from onnx_multi_backend.conformance.case_facts import DEFAULT_DOMAIN
from onnx_multi_backend.conformance.foreign import message_of
from onnx_multi_backend.conformance.tester_answers import Benchmark, DeviceSupport, OperatorSupport, Timing
from onnx_multi_backend.errors import InvalidModelError, OptionError, RunError
from onnx_multi_backend.models.given import ModelLike
from onnx_multi_backend.models.graph_walk import all_nodes
from onnx_multi_backend.models.loading import load

#: Old enough that every backend of today reads it.
_RELU = '<ir_version: 7, opset_import: ["": 13]> relu (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }'

_WARM_UP = 2

#: What a backend may raise: one that calls `sys.exit` must not end the script that tests it.
_RAISED = (Exception, SystemExit)


class BackendTester:
    """Asks a backend what it can do, and holds its answers against what it does.

    Everything happens in this process: a backend that crashes or hangs takes the tester with it.

    Parameters
    ----------
    backend : type[Backend] or module
        Anything with ONNX's backend interface, `onnx.backend.base`.
    device : str, optional
        The device to prepare models for; by default the backend's own default.
    options : mapping, optional
        Passed to every ``prepare``, ``is_compatible`` and ``run_model``.
    """

    def __init__(self, backend: Any, device: str | None = None, options: Mapping[str, Any] | None = None) -> None:
        self._backend = backend
        self._options = {**(options or {}), **({} if device is None else {"device": device})}

    def operator_support(self, models: Iterable[ModelLike]) -> dict[tuple[str, str], OperatorSupport]:
        r"""Try to prepare models, and return by operator what came of it.

        Parameters
        ----------
        models : iterable of path, bytes or onnx.ModelProto
            Each is handed to the backend as a ModelProto of its own.

        Returns
        -------
        dict of (domain, op_type) to OperatorSupport
            Sorted by its keys; ``print(*support.values(), sep="\n")`` makes a table.

        Raises
        ------
        InvalidModelError
            A model cannot be read; the message says which.
        """
        tallies: dict[tuple[str, str], _Tally] = {}
        for position, given in enumerate(models):
            model = _read(given, position)
            operators = {(node.domain or DEFAULT_DOMAIN, node.op_type) for node in all_nodes(model)}
            compatible, prepared, errors = self._try(model)
            for operator in operators:
                tallies.setdefault(operator, _Tally()).add(compatible, prepared, errors)
        asked = hasattr(self._backend, "is_compatible")
        return {operator: tally.support(*operator, asked=asked) for operator, tally in sorted(tallies.items())}

    def _try(self, model: ModelProto) -> tuple[bool, bool, list[str]]:
        """Whether `is_compatible` says yes, whether `prepare` returns something, and what was raised."""
        compatible = prepared = False
        errors = []
        if hasattr(self._backend, "is_compatible"):
            try:
                compatible = bool(self._backend.is_compatible(model, **self._options))
            except _RAISED as e:
                errors.append(f"is_compatible raised {_one_line(e)}")
        try:
            prepared = self._backend.prepare(model, **self._options) is not None
            if not prepared:
                errors.append("prepare returned None")
        except _RAISED as e:
            errors.append(_one_line(e))
        return compatible, prepared, errors

    def device_support(self, devices: Iterable[str]) -> dict[str, DeviceSupport]:
        """Compare what `supports_device` says with what happens on the device.

        Parameters
        ----------
        devices : iterable of str
            Device strings, sense or nonsense: ``["CPU", "CUDA", "NO_SUCH_DEVICE"]``.

        Returns
        -------
        dict of str to DeviceSupport
            In the order of ``devices``.
        """
        return {device: self._device_support(device) for device in devices}

    def _device_support(self, device: str) -> DeviceSupport:
        claimed, error = False, ""
        try:
            claimed = bool(self._backend.supports_device(device))
        except _RAISED as e:
            error = f"supports_device raised {_one_line(e)}"
        x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
        expected = np.maximum(x, 0)
        try:
            options = {**self._options, "device": device}
            (y,) = self._backend.prepare(onnx.parser.parse_model(_RELU), **options).run([x])
            np.testing.assert_array_equal(y, expected)
        except AssertionError as e:
            return DeviceSupport(claimed, False, error or f"wrong result: {_one_line(e)}")
        except _RAISED as e:
            return DeviceSupport(claimed, False, error or _one_line(e))
        return DeviceSupport(claimed, True, error)

    def benchmark(self, model: ModelLike, inputs: Any, iterations: int = 10) -> Benchmark:
        """Measure what preparing a model once saves.

        `run_model` and `run` take turns, so that a slow moment of the host hits both.

        Parameters
        ----------
        model : path, bytes or onnx.ModelProto
            Handed to the backend as a ModelProto.
        inputs : list of array
            As the backend's `run` takes them.
        iterations : int, default 10
            How often each is timed, after an untimed warm-up.

        Raises
        ------
        OptionError
            ``iterations`` is not a positive integer.
        InvalidModelError
            The model cannot be read.
        RunError
            `prepare` returned None, or the backend called `sys.exit`. Whatever else it raises gets through.
        """
        if not isinstance(iterations, int) or iterations < 1:
            raise OptionError(f"iterations={iterations!r}: give a whole number of at least 1.")
        try:
            return self._benchmark(_read(model), inputs, iterations)
        except SystemExit as e:
            raise RunError(f"the backend raised {_one_line(e)}.") from e

    def _benchmark(self, proto: ModelProto, inputs: Any, iterations: int) -> Benchmark:
        # A module may call it run, as onnxruntime.backend does.
        run_model = getattr(self._backend, "run_model", None) or self._backend.run
        rep = self._backend.prepare(proto, **self._options)
        if rep is None:
            raise RunError("prepare returned None instead of something with a method run.")
        calls: list[Callable[[], Any]] = [
            lambda: run_model(proto, inputs, **self._options),
            lambda: rep.run(inputs),
        ]
        for _ in range(_WARM_UP):
            for call in calls:
                call()
        times = [[_time_ns(call) for call in calls] for _ in range(iterations)]
        return Benchmark(*map(_timing, zip(*times, strict=True)))


@dataclass
class _Tally:
    models: int = 0
    compatible: int = 0
    preparable: int = 0
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, compatible: bool, prepared: bool, errors: list[str]) -> None:
        self.models += 1
        self.compatible += compatible
        self.preparable += prepared
        self.errors.update(errors)

    def support(self, domain: str, op_type: str, *, asked: bool) -> OperatorSupport:
        compatible = self.compatible if asked else None
        errors = dict(self.errors.most_common())
        return OperatorSupport(domain, op_type, self.models, compatible, self.preparable, errors)


def _read(model: ModelLike, position: int | None = None) -> ModelProto:
    """Return a model that is the tester's own, its external data loaded."""
    try:
        loaded = load(model)
    except InvalidModelError as error:
        if position is None:
            raise
        raise InvalidModelError(f"models[{position}]: {error}") from error
    proto = ModelProto()
    proto.CopyFrom(loaded.proto)
    if loaded.path is not None:
        onnx.load_external_data_for_model(proto, os.fspath(loaded.path.parent))
    return proto


def _time_ns(call: Callable[[], Any]) -> int:
    start = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - start


def _timing(times_ns: tuple[int, ...]) -> Timing:
    times = [t / 1e6 for t in times_ns]
    return Timing(len(times), statistics.median(times), min(times), max(times))


def _one_line(error: BaseException) -> str:
    lines = message_of(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
