# SPDX-License-Identifier: Apache-2.0
"""A compiled model on ONNX Runtime."""

from __future__ import annotations

import functools
import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from onnx_multi_backend import option_words
from onnx_multi_backend.engines.ort import errors
from onnx_multi_backend.engines.ort.binding import Binding
from onnx_multi_backend.engines.ort.buffered import Buffered, can_buffer, input_buffers
from onnx_multi_backend.engines.ort.cuda import graphs as cuda_graphs
from onnx_multi_backend.engines.ort.device_array import DeviceArray
from onnx_multi_backend.engines.ort.native import run_of
from onnx_multi_backend.engines.ort.records import record
from onnx_multi_backend.engines.ort.run_options import make_run_options
from onnx_multi_backend.engines.ort.unlisted import may_be_unlisted, with_unlisted
from onnx_multi_backend.engines.ort.values import exotic_type, to_array, to_ort_value
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Feeds, ProviderFailedError, Session, Value
from onnx_multi_backend.errors import DeviceError, OptionError, RunError, UnsupportedModelError
from onnx_multi_backend.host import cpus, devices
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.contents import Contents

#: Idle bindings that are kept at most.
_KEPT = 32

#: What OpenVINO says of a tensor without elements, which ONNX Runtime gives no memory.
_NO_MEMORY = "Tensor data equal nullptr"
_OTHER_NAMES = "Output names mismatch"


class OrtSession(Session):
    """Wraps one InferenceSession.

    Attributes
    ----------
    native : onnxruntime.InferenceSession
    """

    spoilable, failures, serial = False, 0, False

    def __init__(self, native: Any, placement: tuple[NodePlacement, ...] | None = None) -> None:
        self.native = native
        self._placement = placement
        self._outputs = [o.name for o in native.get_outputs()]
        # ONNX Runtime 1.24 hands the caller's own array back where a graph input is a graph output too.
        # An output that is listed twice is one array too, and a sequence may hold the memory of its inputs.
        names = {i.name for i in _inputs(native)}
        self._aliased = [
            i
            for i, (name, output) in enumerate(zip(self._outputs, native.get_outputs(), strict=True))
            if name in names or name in self._outputs[:i] or not output.type.startswith("tensor")
        ]
        self._native_run = run_of(native)
        self._errors = errors.all_errors()
        #: Bindings for small models of fixed shapes, and how to make one; that is known after the first run.
        self._idle: deque[Buffered] = deque(maxlen=_KEPT)
        self._make_buffered: Callable[[], Buffered] | None = None
        self._untried = not self._aliased
        #: Names of CUDA graphs, where the session captures them.
        self._graphs = itertools.count(1) if cuda_graphs.captures(native) else None
        known = {name: record(name) for name in native.get_providers()}
        self._spoilers = [of.spoiled_by for of in known.values() if of.spoiled_by is not None]
        self.spoilable = bool(self._spoilers)
        self.serial = any(
            of.serial is not None and of.serial(native.get_provider_options()[name]) for name, of in known.items()
        )

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        if self._make_buffered is not None and not run_options:
            try:
                buffered = self._idle.pop() if self._idle else self._make_buffered()
                made = buffered.run(feeds)
            except IndexError:  # another thread took the last one
                made = None
            except self._errors as error:
                # In other memory the same may go well: the shape of an output depends on the data.
                self._note(error)
                self._make_buffered = made = None
            else:
                self._idle.append(buffered)
            if made is not None:
                return made
        if type(feeds) is not dict:  # some lie on a device
            return self.run_to_device(feeds, run_options, None)
        options = self._run_options(run_options)
        try:
            results: list[Value] = self._native_run(self._outputs, feeds, options)
        except self._errors as error:
            raise self._run_error(error) from error
        for i in self._aliased:
            results[i] = _copied(results[i])
        if self._untried:
            self._untried = False
            if can_buffer(results) and input_buffers(self.native) is not None:
                self._make_buffered = functools.partial(Buffered, self.native, [np.empty_like(r) for r in results])
        return results

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """Run once through an IOBinding."""
        wanted = self._output_device(device)
        self._require_arrays(feeds)
        options = self._run_options(run_options)
        try:
            binding = Binding(self.native, _plain_memory(feeds), dict.fromkeys(self._outputs, wanted))
            binding.run(options)
            results = binding.results()
            return [value.numpy() for value in results] if wanted.kind == "CPU" else results
        except self._errors as error:
            raise self._run_error(error) from error

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run on fixed buffers."""
        try:
            places = {n: place for n, place in zip(self._outputs, outputs, strict=True) if place is not None}
            run = Binding(self.native, inputs, places, self._run_options(self._graph_of(inputs, places))).call
        except self._errors as error:
            raise self._run_error(error) from error

        def bound() -> None:
            try:
                run()
            except self._errors as error:
                raise self._run_error(error) from error

        return bound

    def _note(self, error: Exception) -> None:
        """Note whether an error of a run spoils the session."""
        if any(spoils(error) for spoils in self._spoilers):
            self.failures += 1

    def _run_error(self, error: Exception) -> Exception:
        self._note(error)
        return _run_error(error)

    def _run_options(self, given: Any) -> Any:
        """RunOptions for a run, which may be the user's own."""
        if given is not None and not isinstance(given, Mapping):
            if self._graphs is not None:
                raise OptionError(
                    "This session captures CUDA graphs, and each run names the one that it is for. Pass run_options as a mapping of names to values."
                )
            return given
        if self._graphs is not None:
            given = {cuda_graphs.ENTRY: cuda_graphs.NONE, **(given or {})}
        return make_run_options(given) if given else None

    def _graph_of(self, inputs: Feeds, outputs: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The run options that name a binding's own graph; None where it has none, since arrays of the host are copied around a run."""
        on_device = all(isinstance(value, DeviceArray) for value in (*inputs.values(), *outputs.values()))
        return {cuda_graphs.ENTRY: next(self._graphs)} if self._graphs is not None and on_device else None

    @property
    def in_flight(self) -> int:
        """As many as there are cores, where each run has one thread; else two, one of which fills what the other leaves."""
        options = self.native.get_session_options()
        return max(2, cpus.usable().count) if options.intra_op_num_threads == 1 else 2

    def _output_device(self, device: str | None) -> Device:
        given = devices.CPU if device is None or devices.CPU.knows(device) else devices.CUDA
        wanted = given.parse(device, "output_device")
        if wanted.kind == "CUDA" and not _on_cuda(self.native):
            raise DeviceError(
                f"output_device={device!r}: this session holds {', '.join(self.native.get_providers())}, whose results lie "
                "on the CPU. Leave output_device out, or prepare on a CUDA device."
            )
        return wanted

    def _require_arrays(self, feeds: Feeds) -> None:
        others = [n for n, v in feeds.items() if not isinstance(v, (np.ndarray, DeviceArray)) or v.dtype == object]
        others += [o.name for o in self.native.get_outputs() if not o.type.startswith("tensor(") or "string" in o.type]
        if others:
            raise UnsupportedModelError(
                f"Only tensors of numbers can lie on a device, which {', '.join(others)} is not. Pass arrays of the host, and "
                "leave output_device out."
            )

    def get_providers(self) -> list[str]:
        """The execution providers that the session holds, by priority."""
        return list(self.native.get_providers())

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Their options, as ONNX Runtime reports them."""
        return {name: dict(options) for name, options in self.native.get_provider_options().items()}

    def end_profiling(self) -> str:
        """End the profile, and return the name of its file."""
        return str(self.native.end_profiling())

    def placement(self) -> tuple[NodePlacement, ...]:
        """Where each node that was not folded runs, in ONNX Runtime's own order."""
        return _listed(self.native) if self._placement is None else self._placement


class ExoticOrtSession(OrtSession):
    """One that exchanges types which numpy lacks, as OrtValues, byte by byte: exact and slow."""

    def __init__(self, native: Any, placement: tuple[NodePlacement, ...] | None = None) -> None:
        super().__init__(native, placement)
        self._exotic = {i.name: t for i in _inputs(native) if (t := exotic_type(i.type)) is not None}

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        if not all(isinstance(value, np.ndarray) for value in feeds.values()):
            raise UnsupportedModelError(
                "ONNX Runtime takes no sequences, maps or empty optionals in a run that also exchanges types which numpy lacks "
                f"({', '.join(self._exotic)}). Prepare with {option_words.given('adapt', True)}, or split the model."
            )
        options = self._run_options(run_options)
        try:
            values = {name: to_ort_value(value, self._exotic.get(name)) for name, value in feeds.items()}
            results = self.native.run_with_ort_values(self._outputs, values, options)
            return [to_array(value) for value in results]
        except self._errors as error:
            raise self._run_error(error) from error

    def run_to_device(self, feeds: Feeds, run_options: Mapping[str, Any] | None, device: str | None) -> Sequence[Value]:
        """Results come to the host byte by byte, and stay there."""
        if self._output_device(device).kind != "CPU":
            raise UnsupportedModelError(
                f"output_device={device!r}: types that numpy lacks are exchanged on the host only. Leave output_device out, or "
                f"prepare with {option_words.given('adapt', True)}."
            )
        return self.run(feeds, run_options)

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Refused: buffers of numpy cannot hold these types."""
        raise UnsupportedModelError(
            f"Buffers of types that numpy lacks ({', '.join(self._exotic) or 'the outputs'}) cannot be bound. Prepare with {option_words.given('adapt', True)}."
        )


def _plain_memory(feeds: Feeds) -> Feeds:
    """The feeds with a copy of each array that does not lie in memory as a binding reads it."""
    return {
        n: np.array(v, order="C") if isinstance(v, np.ndarray) and not v.flags.carray else v for n, v in feeds.items()
    }


def make_session(
    native: Any, placement: tuple[NodePlacement, ...] | None = None, of: Contents | None = None
) -> OrtSession:
    """Wrap an InferenceSession by the types it exchanges; `placement` where the session itself does not have it, which a model (`of`) may tell."""
    if of is not None and (nodes := may_be_unlisted(of)):
        placement = with_unlisted(nodes, _listed(native))
    exotic = any(exotic_type(v.type) is not None for v in [*_inputs(native), *native.get_outputs()])
    return ExoticOrtSession(native, placement) if exotic else OrtSession(native, placement)


def _listed(native: Any) -> tuple[NodePlacement, ...]:
    return tuple(
        NodePlacement(_name(node), node.op_type, node.domain, subgraph.ep_name)
        for subgraph in native.get_provider_graph_assignment_info()
        for node in subgraph.get_nodes()
    )


def _name(node: Any) -> str:
    """The name of a node; empty where it is not UTF-8, which ONNX Runtime's bindings do not read."""
    try:
        return str(node.name)
    except UnicodeDecodeError:
        return ""


def _on_cuda(native: Any) -> bool:
    return any(record(name).on_cuda for name in native.get_providers())


def _inputs(native: Any) -> list[Any]:
    return [*native.get_inputs(), *native.get_overridable_initializers()]


def _copied(value: Value) -> Value:
    if isinstance(value, list):
        return [_copied(v) for v in value]
    return np.array(value) if isinstance(value, np.ndarray) else value


def _run_error(error: Exception) -> Exception:
    text = errors.first_line(error)
    if "Failed to construct locale" in text:
        return UnsupportedModelError(
            f"ONNX Runtime needs a locale that this host lacks: {text}. Install it, on Debian with `locale-gen`, or give "
            "StringNormalizer another locale."
        )
    if isinstance(error, errors.not_implemented()):
        return UnsupportedModelError(f"ONNX Runtime cannot run the model on these inputs: {text}")
    if _NO_MEMORY in text:
        return ProviderFailedError(
            f"ONNX Runtime failed while it ran the model: {text} A tensor has no elements, which the execution provider does not take. "
            f"{_on_cpu()}",
            "does not take a tensor without elements that {model} makes or gets",
        )
    if _OTHER_NAMES in text:
        return ProviderFailedError(
            f"ONNX Runtime failed while it ran the model: {text}. {_on_cpu()}",
            "names the results of a part of {model} otherwise than ONNX Runtime",
        )
    return RunError(f"ONNX Runtime failed while it ran the model: {text}")


def _on_cpu() -> str:
    partial = option_words.given("fallback", "partial")
    return f"Prepare with {partial}, which runs the model on the CPU then, or choose OrtCpu."
