# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime set up for some execution providers, one device and some options."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx import ModelProto, NodeProto, TypeProto

from onnx_multi_backend.adapt.engine import Doubt, Engine
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.cache import Entry
from onnx_multi_backend.devices import Device
from onnx_multi_backend.engines.diagnosis import refusal
from onnx_multi_backend.engines.ort import defects, errors, keeping, providers, runtime
from onnx_multi_backend.engines.ort.device_array import DeviceArray, lies_on_a_device
from onnx_multi_backend.engines.ort.input_order import unused_last
from onnx_multi_backend.engines.ort.limits import OrtLimits
from onnx_multi_backend.engines.ort.options import make_session_options
from onnx_multi_backend.engines.ort.session import OrtSession, make_session
from onnx_multi_backend.engines.ort.simplest import compiles
from onnx_multi_backend.engines.ort.values import exotic_type
from onnx_multi_backend.engines.session import Keeping, Payload, RefusedError
from onnx_multi_backend.errors import (
    CacheWarning,
    DeviceUnavailableError,
    FallbackWarning,
    OnnxMultiBackendError,
    OptionError,
    OptionTypeError,
    UnsupportedModelError,
)
from onnx_multi_backend.external_data import leads_out, without_links
from onnx_multi_backend.placement import Fallback, judge
from onnx_multi_backend.tensors import PACKED_BITS, type_from_string
from onnx_multi_backend.user_warnings import warn


@dataclass(frozen=True)
class OrtTarget:
    """Compiles models on ONNX Runtime.

    Attributes
    ----------
    preset : str
        For messages.
    providers : tuple of (str, dict of str to str)
        Execution providers by priority with their options.
    device : Device
        Where the first of them runs.
    fallback : {"partial", "none", "full"}
    session_options : mapping, onnxruntime.SessionOptions or None
    shape_options : callable or None
        Makes provider options for the first provider from fixed input shapes.
    strict : bool
        Whether `accepts` is a no to a node that another provider than the requested ones would run.
    """

    preset: str
    providers: tuple[tuple[str, Mapping[str, str]], ...]
    device: Device
    fallback: Fallback = "partial"
    session_options: Any = None
    shape_options: Any = None
    strict: bool = False

    @property
    def limits(self) -> OrtLimits:
        """What ONNX Runtime takes with these providers."""
        return OrtLimits(packed_outputs=providers.OPENVINO not in self.requested)

    @property
    def requested(self) -> tuple[str, ...]:
        """Names of the providers that were asked for."""
        return tuple(name for name, _ in self.providers)

    def build(self, payload: Payload) -> OrtSession:
        """Build a session and hold its placement to the ``fallback`` policy."""
        payload, changes = unused_last(payload) if providers.OPENVINO in self.requested else (payload, ())
        try:
            session = self._session(payload, self.providers)
        except OnnxMultiBackendError:
            raise
        except errors.all_errors() as error:
            if payload.keep_in is not None:  # it may be the writing that failed
                session = self.build(replace(payload, keep_in=None))
                warn(
                    f"{self.preset}: the optimized model of {payload.loaded.label} cannot be kept: {errors.first_line(error)}",
                    CacheWarning,
                )
                return session
            if any(given for _, given in self.providers) and not compiles(self.providers, self.device, self.accepts):
                options = {name: dict(given) for name, given in self.providers}
                raise OptionError(
                    f"{self.preset}: not even a Relu can be prepared with these options, {options}: "
                    f"{errors.first_line(error)}. Correct the name or the value of the option."
                ) from error
            if self.fallback == "full" and self.requested != (providers.CPU,):
                return self._on_cpu(payload, error)
            raise _refused(error) from error
        judge(
            session.placement(),
            requested=[n for n in self.requested if n != providers.CPU]
            or self.requested,  # named last, it is a fallback
            inserted=payload.adapted.inserted,
            fallback=self.fallback,
            preset=self.preset,
        )
        self._check_packed_outputs(session)
        session.adaptations = changes
        if payload.keep_in is not None:
            session.keep()
        return session

    def _check_packed_outputs(self, session: OrtSession) -> None:
        """Refuse what the OpenVINO execution provider (1.24.1) computes wrongly without a word: it returns zeros."""
        packed = [o.name for o in session.native.get_outputs() if exotic_type(o.type) in PACKED_BITS]
        if packed and any(node.provider == providers.OPENVINO for node in session.placement()):
            raise UnsupportedModelError(
                f"{self.preset}: {providers.OPENVINO} does not write outputs of 4-bit and 2-bit types "
                f"({', '.join(packed)}). Cast them inside the model, or choose OrtCpu."
            )

    def keeping(self) -> Keeping | None:
        """Sessions of the CPU provider alone can be kept; the others' nodes are compiled elsewhere."""
        parts = keeping.parts_of(self.session_options) if self.requested == (providers.CPU,) else None
        if parts is None:
            return None
        return Keeping("ort", runtime.describe(), (self.preset, self.providers, self.device.text, *parts))

    def restore(self, entry: Entry, facts: Mapping[str, Any]) -> OrtSession:
        """Make a session of an optimized model."""
        try:
            native = keeping.restored(entry, self.session_options)
        except errors.all_errors() as error:
            raise _refused(error) from error
        native._model_bytes = None
        session = make_session(native)
        session.restore(facts)
        return session

    def with_providers(self, names: Sequence[Any], options: Sequence[Mapping[str, Any]] | None) -> OrtTarget:
        """The same target on other providers.

        Raises
        ------
        DeviceUnavailableError
            A provider cannot be used here.
        OptionError
            `options` does not have one mapping a provider.
        """
        if options is None and isinstance(names, (list, tuple)) and all(isinstance(n, tuple) for n in names):
            names, options = [n for n, _ in names], [o for _, o in names]
        if not isinstance(names, (list, tuple)) or not names or not all(isinstance(n, str) for n in names):
            raise OptionTypeError(f"Execution providers are a list of names; {names!r} was given.")
        if len(set(names)) != len(names):
            raise OptionError(f"Each execution provider is named once; {', '.join(names)} was given.")
        given_options = list(options) if options is not None else [{} for _ in names]
        if len(given_options) != len(names):
            raise OptionError(f"{len(given_options)} mappings of options were given for {len(names)} providers.")
        if not all(isinstance(o, Mapping) for o in given_options):
            raise OptionTypeError(f"options is one mapping a provider; {options!r} was given for {', '.join(names)}.")
        for name in names:
            problem = providers.why_unusable(name, Device(providers.default_device(name)))
            if problem is not None:
                raise DeviceUnavailableError(f"{self.preset} cannot run on {name}: {problem}")
        texts = [{k: str(v) for k, v in given.items()} for given in given_options]
        device = Device(providers.default_device(names[0]))
        return replace(self, providers=tuple(zip(names, texts, strict=True)), device=device, shape_options=None)

    def adopt(self, value: Any) -> Any:
        """Take over an array on a GPU, where the first provider runs on one."""
        on_gpu = self.requested[0] in (providers.CUDA, providers.TENSORRT)
        return DeviceArray.adopt(value) if on_gpu and lies_on_a_device(value) else None

    def for_throughput(self) -> OrtTarget:
        """On the CPU, one thread a run: so runs share the cores without waiting for one another.

        Threads that the user asked for stay, and so does a session on another provider.
        """
        options = self.session_options
        if self.requested != (providers.CPU,) or not (options is None or isinstance(options, Mapping)):
            return self
        if any("num_threads" in name or name == "execution_mode" for name in options or ()):
            return self
        return replace(self, session_options={**(options or {}), "intra_op_num_threads": 1})

    def output_type(self, model: ModelProto, name: str) -> TypeProto | None:
        """The type that ONNX Runtime infers for an output: it knows operators that onnx does not."""
        try:
            session = runtime.load().InferenceSession(
                model.SerializeToString(), make_session_options(None), providers=[providers.CPU]
            )
        except errors.all_errors():
            return None
        found = next(o for o in session.get_outputs() if o.name == name)
        return type_from_string(found.type, found.shape)

    @property
    def any_opset(self) -> bool:
        """Kernels of the CPU provider differ by opset; another provider's answer does not, and costs more to ask for."""
        return self.strict or (self.requested != (providers.CPU,) and self.fallback != "full")

    @property
    def identity(self) -> Hashable:
        """Providers and the device decide what is accepted."""
        return tuple(name for name, _ in self.providers), self.device.text, self.strict

    def askings(self, *, taken: bool) -> Sequence[tuple[Engine, Engine]]:
        """With CPU nodes allowed, whatever takes a node serves; but one node at least has to run as requested.

        What the CPU provider lacks too may need another opset: then it is asked alone. A provider may leave a small
        node to the CPU that it takes among others: what takes a node's place is only asked to run at all, and the
        placement of the whole decides.
        """
        cpu = replace(self, providers=((providers.CPU, {}),))
        if self.requested[0] == providers.TENSORRT:  # it builds an engine for minutes: the CPU provider is asked
            return [(cpu, cpu)]
        if self.requested == (providers.CPU,):
            return [(self, self)]
        if self.fallback == "full" or self.requested[0] == providers.CPU:
            return [(self, self), (cpu, cpu)]
        strict = replace(self, strict=True)
        if self.fallback == "none":
            return [(strict, strict)]
        return [(strict, cpu)] if taken else [(self, self), (cpu, cpu), (strict, cpu)]

    def suspects(self, node: NodeProto) -> bool:
        """Whether `distrusts` may have something to say about a node."""
        return defects.suspects(node, openvino=providers.OPENVINO in self.requested)

    def distrusts(self, site: Site) -> Doubt | None:
        """Why ONNX Runtime computes a node wrongly, or refuses it only when it runs."""
        return defects.find(site, openvino=providers.OPENVINO in self.requested)

    def accepts(self, model: ModelProto) -> str | None:
        """None when a session can be built for this (small) model, else ONNX Runtime's complaint."""
        try:
            options = make_session_options(None)
            options.intra_op_num_threads = 1
            self._add_providers(options, self.providers, None)
            session = make_session(
                runtime.load().InferenceSession(model.SerializeToString(), options, enable_fallback=0)
            )
        except errors.all_errors() as error:
            return errors.first_line(error)
        if self.strict:
            elsewhere = [node for node in session.placement() if node.provider not in self.requested]
            if elsewhere:
                return f"{self.requested[0]} does not take it"
        return None

    def _session(self, payload: Payload, wanted: Sequence[tuple[str, Mapping[str, str]]]) -> OrtSession:
        folder, source = None, payload.path or b""
        if payload.path is None:
            folder = payload.loaded.path.parent if payload.loaded.path is not None else None
            if folder is not None and payload.loaded.external and leads_out(payload.adapted.proto, folder):
                proto, folder = without_links(payload.loaded.whole(payload.adapted.proto), folder)
                source = proto.SerializeToString()
            else:
                source = payload.bytes()
        options = make_session_options(
            self.session_options, external_data_folder=str(folder) if folder is not None else None
        )
        if payload.keep_in is not None:
            keeping.write_into(options, payload.keep_in, payload.adapted.proto)
        ort = runtime.load()
        native: Any
        if isinstance(self.session_options, ort.SessionOptions):  # adding providers would alter the user's object
            native = ort.InferenceSession(
                source, options, providers=[(n, dict(o)) for n, o in wanted], enable_fallback=0
            )
        else:
            self._add_providers(options, wanted, payload.shapes)
            native = ort.InferenceSession(source, options, enable_fallback=0)
        native._model_bytes = None  # kept for its own set_providers, it would hold the weights a second time
        held = native.get_providers()
        for name, _ in wanted:
            if name not in held:
                raise DeviceUnavailableError(
                    f"{self.preset}: ONNX Runtime built the session without {name} (it holds {', '.join(held)}). "
                    "Set session_options={'log_severity_level': 0} to see why."
                )
        return make_session(native)

    def _add_providers(
        self,
        options: Any,
        wanted: Sequence[tuple[str, Mapping[str, str]]],
        shapes: Mapping[str, tuple[int, ...]] | None,
    ) -> None:
        for i, (name, given) in enumerate(wanted):
            if name == providers.CPU and len(wanted) == 1:
                continue  # every session has it
            chosen = dict(given)
            if i == 0 and shapes is not None and self.shape_options is not None:
                chosen.update(self.shape_options(shapes))
            if providers.built_in(name):
                try:
                    with providers.quiet():
                        options.add_provider(name, chosen)
                except errors.all_errors() as error:
                    raise OptionError(
                        f"{self.preset}: {name} refuses its options {chosen}: {errors.first_line(error)}. "
                        "Correct the name or the value of the option."
                    ) from error
            else:
                options.add_provider_for_devices(providers.plugin_devices_for(name, self.device), chosen)

    def _on_cpu(self, payload: Payload, error: Exception) -> OrtSession:
        """With ``fallback="full"``, a model that a provider claimed and cannot compile runs on the CPU EP instead."""
        try:
            session = self._session(payload, ())
        except errors.all_errors():
            raise _refused(error) from error
        warn(
            f"{self.preset}: {self.requested[0]} fails to compile {payload.loaded.label}, all of it runs on "
            f"{providers.CPU}: {errors.first_line(error)}",
            FallbackWarning,
        )
        return session

    def explain(self, payload: Payload, refused: RefusedError) -> UnsupportedModelError:
        """Say which nodes ONNX Runtime lacks, and why."""
        return refusal(payload, refused.words, self.accepts, limits=self.limits, who=self.preset)


def _refused(error: Exception) -> RefusedError:
    return RefusedError(errors.first_line(error), lacks_kernel=isinstance(error, errors.not_implemented()))
