# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's ``InferenceSession``, on any preset: for code that is written for ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from onnx_multi_backend.engines.ort import providers as ort_providers
from onnx_multi_backend.engines.ort.provider_list import with_options
from onnx_multi_backend.errors import FallbackWarning, InputError, OptionError
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.given import ModelLike
from onnx_multi_backend.models.node_arg import NodeArg
from onnx_multi_backend.presets.meant import OF_PROVIDER
from onnx_multi_backend.presets.registry import get_preset
from onnx_multi_backend.running.prepared import PreparedModel
from onnx_multi_backend.running.recipe import check_option_pickled
from onnx_multi_backend.sessions.signature import ModelMetadata
from onnx_multi_backend.user_warnings import warn

#: Names the preset of sessions that name none.
VARIABLE = "ONNX_MULTI_BACKEND_PRESET"

#: Runs operators of a service and none of ONNX: ONNX Runtime lists it first on hosts without any other than the CPU's.
_AZURE = "AzureExecutionProvider"


#: Methods of ONNX Runtime's session that are not here, and what does their work.
_INSTEAD = {
    "io_binding": "session.prepared.bind(inputs), then run() on what it returns",
    "run_with_iobinding": "session.prepared.bind(inputs), then run() on what it returns",
    "run_with_ort_values": "session.prepared.bind(inputs), then run() on what it returns",
    "run_with_ortvaluevector": "session.prepared.bind(inputs), then run() on what it returns",
    "run_async": "session.prepared.run_many(batches)",
    "set_providers": "a new session with these providers",
    "disable_fallback": 'a new session with fallback="none", which runs nothing on another execution provider',
    "enable_fallback": 'a new session with fallback="full", which is the default',
    "get_profiling_start_time_ns": "the times in the file that session.end_profiling() names",
    "get_provider_graph_assignment_info": "session.prepared.placement()",
}


class InferenceSession:
    """A model on a preset, with the methods of ``onnxruntime.InferenceSession`` that run a model and describe it.

    There is no ``io_binding``, ``run_async`` or ``run_with_ort_values``: use `prepared`, which has ``bind`` and ``run_many``.

    Parameters
    ----------
    path_or_bytes : path or bytes
    sess_options : onnxruntime.SessionOptions, optional
        Passed on to the presets on ONNX Runtime.
    providers : sequence of str, or of (str, mapping), optional
        ONNX Runtime's names by priority: the first that can be used here decides the preset, CPU where none is named.
        A `FallbackWarning` says why those before it cannot be used.
    provider_options : sequence of mapping, optional
        One mapping a provider.
    preset : str, optional
        A preset's name, which decides instead; by default what the environment variable ``ONNX_MULTI_BACKEND_PRESET`` says.
    **options
        Of the preset. As in ONNX Runtime, all nodes may run on the CPU (``fallback="full"``) unless you say otherwise.

    Raises
    ------
    OnnxMultiBackendError
        As `Preset.prepare`.
    """

    def __init__(
        self,
        path_or_bytes: ModelLike,
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        preset: str | None = None,
        **options: Any,
    ) -> None:
        name = os.environ.get(VARIABLE) or None if _is_nothing(preset) else preset
        if name is None:
            named = ["CPUExecutionProvider"] if providers is None or _is_nothing(providers) else providers
            name, own = _chosen(with_options(named, None if _is_nothing(provider_options) else provider_options))
            options = {**own, **options}
        if sess_options is not None and "session_options" in (o.name for o in get_preset(name).family_options):
            options.setdefault("session_options", sess_options)
        self._options = sess_options
        self._model: PreparedModel = get_preset(name).prepare(path_or_bytes, **{"fallback": "full", **options})
        self._names = [i.name for i in self._model.get_inputs()]
        self._tensors = {i.name: i.dtype for i in self._model.get_inputs() if i.onnx_type.startswith("tensor(")}

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what to use in place of a method of ONNX Runtime's session."""
            instead = f" Use {_INSTEAD[name]}." if name in _INSTEAD else ""
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}.{instead}", name=name, obj=self
            )

    def __copy__(self) -> Self:
        """The same session under another name: what ``copy.copy`` gives, whatever can be pickled."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __getstate__(self) -> dict[str, Any]:
        check_option_pickled("sess_options", self._options, "The session")
        return self.__dict__

    @property
    def prepared(self) -> PreparedModel:
        """The prepared model behind the session."""
        return self._model

    def run(
        self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None
    ) -> list[Any]:
        """Run the model and return the outputs with these names, all where there are none.

        A list of numbers stands for an array of the input's type, as ONNX Runtime has it.
        """
        if not isinstance(input_feed, Mapping):
            raise InputError(
                f"input_feed maps the names of inputs to arrays; {type(input_feed).__name__} was given. Pass "
                f"run(None, {{{', '.join(f'{name!r}: ...' for name in self._names)}}})."
            )
        if any(isinstance(value, list) for value in input_feed.values()):
            input_feed = {name: self._array(name, value) for name, value in input_feed.items()}
        return list(self._model.run(output_names or None, input_feed, run_options))

    def _array(self, name: str, value: Any) -> Any:
        dtype = self._tensors.get(name)
        if dtype is None or not isinstance(value, list):
            return value
        try:
            return np.array(value, dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"The input {name!r} is a list that is not an array of {dtype}: {error}") from error

    def get_inputs(self) -> list[NodeArg]:
        """The inputs, each with ``name``, ``type`` and ``shape``."""
        return [NodeArg(info) for info in self._model.get_inputs()]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, each with ``name``, ``type`` and ``shape``."""
        return [NodeArg(info) for info in self._model.get_outputs()]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have a default, each with ``name``, ``type`` and ``shape``."""
        return [NodeArg(info) for info in self._model.get_overridable_initializers()]

    def get_modelmeta(self) -> ModelMetadata:
        """What the model says of itself."""
        return self._model.get_modelmeta()

    def get_providers(self) -> list[str]:
        """The execution providers by priority; the engine's name on presets without any."""
        try:
            return self._model.get_providers()
        except OptionError:
            return [self._model.provider]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each execution provider."""
        try:
            return self._model.get_provider_options()
        except OptionError:
            return {self._model.provider: {}}

    def get_session_options(self) -> Any:
        """What was passed as `sess_options`."""
        return self._options

    def end_profiling(self) -> str:
        """End profiling, and return the name of the profile's file."""
        return self._model.end_profiling()


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, (Sequence, Mapping)) and not value)


def _chosen(named: Sequence[tuple[str, Mapping[str, Any]]]) -> tuple[str, dict[str, Any]]:
    """The preset for the first provider that can be used here, with its options; for the last where none can."""
    found: tuple[str, dict[str, Any]] = ("OrtCpu", {})
    unusable: list[str] = []
    for provider, options in named:
        name = OF_PROVIDER.get(provider)
        if name is None:
            found = ("Ort", {"provider_name": provider, "provider_options": dict(options)})
        elif name == "OrtCpu":  # ONNX Runtime's CPU provider has options that only concern its arena
            found = (name, {})
        else:
            found = (name, {"provider_options": dict(options)})
        if provider == _AZURE:
            continue
        reason = _why_unusable(provider)
        if reason is None:
            if unusable:
                warn(f"{provider} is used, because {'; '.join(unusable)}.", FallbackWarning)
            break
        unusable.append(f"{provider} is not usable: {reason}")
    return found


def _why_unusable(provider: str) -> str | None:
    """Why a provider cannot be used here, None where it can."""
    if (name := OF_PROVIDER.get(provider)) is not None:
        available = get_preset(name).availability()
        return None if available.usable else available.reason
    problem = ort_providers.why_unusable(provider, Device(ort_providers.default_device(provider)))
    return None if problem is None else problem.reason
