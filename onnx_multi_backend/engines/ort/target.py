# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime set up for some execution providers, one device and some options."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onnx_multi_backend import option_words
from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.across_nodes.quantized.distrusted import SWITCH, in_floating_point
from onnx_multi_backend.engines.across_nodes.rewritten import BIASES_ADDED
from onnx_multi_backend.engines.byte_sums.byte_products import may_saturate
from onnx_multi_backend.engines.byte_sums.unsigned_weights import (
    SATURATING,
    SATURATING_ON_OPENVINO,
    with_unsigned_weights,
)
from onnx_multi_backend.engines.ort import errors, providers, runtime, threads, weights_alone
from onnx_multi_backend.engines.ort.deadly import why_deadly
from onnx_multi_backend.engines.ort.device_array import DeviceArray, lies_on_a_device
from onnx_multi_backend.engines.ort.engine import OrtEngine
from onnx_multi_backend.engines.ort.misfit_biases import biases_apart
from onnx_multi_backend.engines.ort.native import let_go_of_bytes
from onnx_multi_backend.engines.ort.openvino_ep.left_to_cpu import taken_anyway
from onnx_multi_backend.engines.ort.optimizers.harmful import JOINING_BIASES, MERGING, harmful_optimizers
from onnx_multi_backend.engines.ort.options import make_session_options, why_no_session
from onnx_multi_backend.engines.ort.plain_scales import plain_scales
from onnx_multi_backend.engines.ort.provider_list import with_options
from onnx_multi_backend.engines.ort.run_options import check_run_options
from onnx_multi_backend.engines.ort.scales_apart import scales_apart
from onnx_multi_backend.engines.ort.session import OrtSession, make_session
from onnx_multi_backend.engines.ort.transposed_outputs import outputs_unquantized
from onnx_multi_backend.engines.ort.unsigned_guesses import signed_apart
from onnx_multi_backend.engines.ort.values import exotic_type
from onnx_multi_backend.engines.placement import MisplacedError, NodePlacement, judge
from onnx_multi_backend.engines.session import Built, Caching, NoOtherWayError, Payload, RefusedError, Session
from onnx_multi_backend.engines.simplest import why_none
from onnx_multi_backend.errors import (
    CacheWarning,
    DeviceUnavailableError,
    FallbackWarning,
    OnnxMultiBackendError,
    OptionError,
    UnsupportedModelError,
)
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.external_data import leads_out, without_links
from onnx_multi_backend.models.tensors import PACKED_BITS
from onnx_multi_backend.user_warnings import warn

if TYPE_CHECKING:
    from onnx_multi_backend.cache.entry import Entry

#: The change that keeps it from one.
_TWICE = "computed_twice"
#: What ONNX Runtime (1.24) says of a constant of more than 127 bytes that an If inside an If reads; with Casts added, it ends the process.
_SHARED_DATA = "HasExternalDataInMemory"


@dataclass(frozen=True)
class OrtTarget(OrtEngine):
    """Compiles models on ONNX Runtime."""

    def build(self, payload: Payload) -> Built:
        """Build a session and hold its placement to the ``fallback`` policy."""
        if not payload.lowering and (words := why_deadly(payload.adapted.proto)) is not None:
            raise UnsupportedModelError(f"{self.preset} cannot run {payload.loaded.label}: {words}.")
        try:
            return self.build_once(payload)
        except (RefusedError, MisplacedError) as error:
            lacks_kernel = isinstance(error, RefusedError) and error.lacks_kernel
            if lacks_kernel and payload.lowering and may_saturate(payload.adapted.facts.contents):
                # It may multiply by int8 whose type is not known here: exact as it is, and no kernel takes unsigned weights.
                with contextlib.suppress(RefusedError):
                    return self.build_once(payload, unsigned=False)
            from onnx_multi_backend.engines.ort.other_ways import build_otherwise

            built = build_otherwise(self, payload, error)
            if built is None:
                raise
            return built

    def without_circles(self, payload: Payload, *, bodies: bool) -> tuple[Payload, tuple[Adaptation, ...]]:
        """The payload without groups of nodes that wait for themselves; see `computed_twice`."""
        model, added = self.apart(payload.adapted.proto, bodies=bodies) if payload.lowering else (None, set())
        if model is None or not added:
            return payload, ()
        change = Adaptation(
            _TWICE,
            "",
            f"computed twice, for the provider and for the CPU provider ({len(added)})",
            "the OpenVINO execution provider also joins a node to others that depend on it through other nodes",
        )
        return payload.changed(model, change, inserted=added), (change,)

    def build_once(
        self, payload: Payload, *, apart: bool = True, grouped: bool = True, ahead: bool = True, unsigned: bool = True
    ) -> Built:
        """Build a session, without another try where that fails.

        `apart`: reductions of the OpenVINO provider are kept apart. `grouped`: so are groups of Casts that change nothing.
        `ahead`: what it may compute wrongly of float16 constants is computed ahead. `unsigned`: int8 weights are written as uint8 where
        sums of their products may saturate.
        """
        changes: tuple[Adaptation, ...] = ()
        if unsigned and payload.lowering and may_saturate(payload.adapted.facts.contents):
            inside = any(known.mixes_nodes for known in self.records)
            operators = SATURATING_ON_OPENVINO if inside else SATURATING
            whole = payload.loaded.whole(payload.adapted.proto)
            model, changes = with_unsigned_weights(whole, operators, on_openvino=inside, provider=inside)
            payload = payload.changed(model, *changes) if changes else payload
        payload, around = self._around_quantized(payload)
        changes = (*changes, *around)
        if any(known.mends_models for known in self.records):
            from onnx_multi_backend.engines.ort.openvino_ep.around import mended

            payload, more = mended(payload, self.records, apart=apart, ahead=ahead, passes_on=self._passes_groups_on)
            payload, circles = self.without_circles(payload, bodies=True)
            changes = (*changes, *more, *circles)
        wanted, told = self._in_floating_point(payload)
        changes = (*changes, *told)
        try:
            session = self._session(payload, wanted)
        except OnnxMultiBackendError:
            raise
        except errors.all_errors() as error:
            if payload.keep_in is not None:  # it may be the writing that failed
                built = self.build(replace(payload, keep_in=None))
                warn(
                    f"{self.preset}: the optimized model of {payload.loaded.label} cannot be kept: {errors.first_line(error)}",
                    CacheWarning,
                )
                return built
            self.check_options()
            if self.fallback == "full" and self.requested != (providers.CPU,):
                return Built(self._on_cpu(payload, error))
            if payload.lowering and self.requested != (providers.CPU,) and _SHARED_DATA in str(error):
                raise NoOtherWayError(
                    f"{self.preset} cannot run {payload.loaded.label}: ONNX Runtime fails at a constant that a subgraph reads "
                    f"({errors.first_line(error)}). Choose Openvino, or a newer release of ONNX Runtime."
                ) from error
            raise _refused(error) from error
        if (words := self.unsafe(payload.adapted.proto, session)) is not None:
            if self.fallback != "full":
                raise RefusedError(words, lacks_kernel=True)
            session = self._on_cpu(payload, RuntimeError(words))
        if self.rules and taken_anyway(session.placement()):
            raise RefusedError("the provider takes nodes that were to be left to the CPU provider", lacks_kernel=True)
        if again := self._casts_apart(payload, session) if grouped else None:
            return self.build_once(again[0], apart=apart, grouped=False, ahead=ahead, unsigned=unsigned).after(
                (*changes, *again[1])
            )
        if again := self._bodies_apart(payload, session):
            return self.build_once(again[0], apart=apart, grouped=grouped, ahead=ahead, unsigned=unsigned).after(
                (*changes, *again[1])
            )
        fallback = ""
        if requested := [n for n in self.requested if n != providers.CPU]:  # named last, it is a fallback
            fallback = judge(
                session.placement(),
                requested=requested,
                inserted=payload.adapted.inserted,
                fallback=self.fallback,
                preset=self.preset,
            )
        self._check_packed_outputs(session)
        self._tell_of_lost_errors(session, payload)
        # The nodes of an optimized model are no longer those of the model.
        facts = {"placement": session.placement()} if payload.keep_in is not None else None
        return Built(self._with_defaults(session, payload), changes, facts, fallback)

    def _around_quantized(self, payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
        """The payload around what ONNX Runtime's optimizers get wrong of Q/DQ nodes, and what was changed for that."""
        changes: tuple[Adaptation, ...] = ()
        for mend in (
            *([plain_scales, scales_apart, biases_apart] if self._fuses_quantized else []),
            outputs_unquantized,
            signed_apart,
        ):
            if payload.lowering and (made := mend(payload.adapted.facts.contents)) is not None:
                payload = payload.changed(made.model, *made.changes, inserted=made.added)
                changes = (*changes, *made.changes)
        return payload, changes

    def _in_floating_point(
        self, payload: Payload
    ) -> tuple[tuple[tuple[str, Mapping[str, str]], ...], tuple[Adaptation, ...]]:
        """The providers, kept from computing a model in 8 bits where they would do so wrongly, and what is told then."""
        told: tuple[Adaptation, ...] = ()
        if payload.lowering and any(known.mixes_nodes for known in self.records):
            told = in_floating_point(payload.adapted.facts.contents)
        if not told:
            return self.providers, ()
        from onnx_multi_backend.engines.ort.openvino_ep.threads import with_properties

        off = {SWITCH: "NO"}
        return tuple((n, with_properties(n, given, self.device, lambda: off)) for n, given in self.providers), told

    @property
    def _fuses_quantized(self) -> bool:
        """Whether the CPU provider fuses Q/DQ nodes: where it computes, or nodes are left to it that OpenVINO might take."""
        return self.requested == (providers.CPU,) or any(known.mixes_nodes for known in self.records)

    @property
    def _passes_groups_on(self) -> bool:
        from onnx_multi_backend.engines.ort.openvino_ep.half_constants import passes_groups_on

        given = self.session_options or {}
        options = {name: value for _, own in self.providers for name, value in own.items()}
        device = options.get("device_type", self.device.text)
        return isinstance(given, Mapping) and passes_groups_on(device, options, given)

    def _casts_apart(self, payload: Payload, session: OrtSession) -> tuple[Payload, tuple[Adaptation, ...]] | None:
        """The payload around groups of Casts that a provider drops; None where there are none."""
        drops = payload.lowering and any(known.drops_cast_pairs for known in self.records)
        if not drops or not any(node.provider == providers.CPU for node in session.placement()):
            return None
        from onnx_multi_backend.engines.ort.openvino_ep.cast_groups import groups_apart

        return groups_apart(payload, session.placement())

    def _with_defaults(self, session: OrtSession, payload: Payload) -> Session:
        """The session, which refuses what a provider would ignore."""
        keeping = [n for n, known in zip(self.requested, self.records, strict=True) if known.keeps_defaults]
        if not keeping:
            return session
        from onnx_multi_backend.engines.ort.openvino_ep.kept_defaults import with_defaults_kept

        model, label = payload.adapted.proto, payload.loaded.label
        return with_defaults_kept(session, model, session.placement(), keeping[0], label)

    def check_options(self) -> None:
        """Raise OptionError where ONNX Runtime builds no session with these options."""
        given = self.session_options if isinstance(self.session_options, Mapping) else None
        if given and (words := why_no_session(given)) is not None:
            raise OptionError(
                f"{self.preset}: not even a Relu can be prepared with {option_words.given('session_options', dict(given))}: "
                f"{words.rstrip('.')}. Correct the name or the value of the option."
            )
        if any(given for _, given in self.providers) and (words := why_none(self)) is not None:
            options = {name: dict(given) for name, given in self.providers}
            raise OptionError(
                f"{self.preset}: not even a Relu can be prepared with these options, {options}: {words.rstrip('.')}. Correct the "
                "name or the value of the option."
            )

    def _bodies_apart(self, payload: Payload, session: OrtSession) -> tuple[Payload, tuple[Adaptation, ...]] | None:
        """The payload with loops whose bodies the provider does not take; None where there is nothing to change."""
        if not payload.lowering or not self.rules or not payload.adapted.facts.contents.has({"Loop"}):
            return None
        from onnx_multi_backend.engines.ort.openvino_ep.loop_bodies import bodies_apart

        apart, changes = bodies_apart(payload, session.placement())
        return (apart, changes) if changes else None

    def _check_packed_outputs(self, session: OrtSession) -> None:
        """Refuse what an execution provider computes wrongly without a word: it returns zeros."""
        zero = {n for n, known in zip(self.requested, self.records, strict=True) if known.zero_packed_outputs}
        packed = [o.name for o in session.native.get_outputs() if exotic_type(o.type) in PACKED_BITS] if zero else []
        if packed and (found := zero & {node.provider for node in session.placement()}):
            raise UnsupportedModelError(
                f"{self.preset}: {found.pop()} does not write outputs of 4-bit and 2-bit types "
                f"({', '.join(packed)}). Cast them inside the model, or choose OrtCpu."
            )

    def _tell_of_lost_errors(self, session: OrtSession, payload: Payload) -> None:
        """Warn where an error of a run may come to nothing."""
        used = {node.provider for node in session.placement()} if any(r.loses_errors for r in self.records) else ()
        for (name, given), known in zip(self.providers, self.records, strict=True):
            if known.loses_errors and name in used:
                from onnx_multi_backend.engines.ort.openvino_ep import lost_errors

                lost_errors.tell(session.native, given, self.device, preset=self.preset, label=payload.loaded.label)

    def caching(self) -> Caching | None:
        """Sessions of the CPU provider alone can be kept; the others' nodes are compiled elsewhere."""
        from onnx_multi_backend.engines.ort import caching

        parts = caching.parts_of(self.session_options) if self.requested == (providers.CPU,) else None
        if parts is None:
            return None
        own = sorted(threads.own(self.session_options).items())
        return Caching("ort", runtime.describe(), (self.preset, self.providers, self.device.text, *parts, own))

    def restore(self, entry: Entry, facts: Mapping[str, Any]) -> OrtSession:
        """Make a session of an optimized model."""
        from onnx_multi_backend.engines.ort import caching

        try:
            native = caching.restored(entry, threads.with_threads(self.session_options))
        except errors.all_errors() as error:
            raise _refused(error) from error
        let_go_of_bytes(native)
        return make_session(native, tuple(NodePlacement(*node) for node in facts["placement"]))

    @property
    def chosen_providers(self) -> tuple[tuple[str, Mapping[str, str]], ...]:
        """The providers with their options."""
        return self.providers

    @property
    def device_text(self) -> str | None:
        """Where the first provider runs."""
        return self.device.text or None

    def with_providers(self, names: Sequence[Any], options: Sequence[Mapping[str, Any]] | None) -> OrtTarget:
        """The same target on other providers.

        Raises
        ------
        DeviceUnavailableError
            A provider cannot be used here.
        OptionError
            `options` does not have one mapping a provider.
        """
        given = with_options(names, options)
        names = [name for name, _ in given]
        if len(set(names)) != len(names):
            raise OptionError(f"An execution provider is named twice: {', '.join(names)}. Name each once.")
        for name in names:
            if self.library and name == self.requested[0]:
                continue
            problem = providers.why_unusable(name, Device(providers.default_device(name)))
            if problem is not None:
                raise DeviceUnavailableError(f"{self.preset} cannot run on {name}: {problem}")
        texts = [{k: str(v) for k, v in own.items()} for _, own in given]
        device = Device(providers.default_device(names[0]))
        library = self.library if names[0] == self.requested[0] else ""
        chosen = tuple(zip(names, texts, strict=True))
        return replace(self, providers=chosen, device=device, shape_options=None, library=library)

    @property
    def spare(self) -> OrtTarget | None:
        """The CPU provider, where others fail on what only a run shows, such as tensors without elements, and `fallback` lets nodes run there."""
        if self.fallback == "none" or not any(known.takes_no_empty_tensors for known in self.records):
            return None
        device = Device(providers.default_device(providers.CPU))
        return replace(self, providers=((providers.CPU, {}),), device=device, shape_options=None, library="")

    def from_device(self, value: Any) -> Any:
        """Take over an array on a GPU, where the first provider runs on one."""
        if not self.records[0].nvidia_library or not lies_on_a_device(value):
            return None
        return value if isinstance(value, DeviceArray) else DeviceArray.from_device(value)

    def check_run_options(self, given: object) -> None:
        """An onnxruntime.RunOptions is used as it is."""
        check_run_options(given, self.preset)

    def for_throughput(self) -> OrtTarget:
        """On the CPU, one thread a run: so runs share the cores without waiting for one another.

        Threads that the user asked for stay, and so does a session on another provider, or one with one thread already.
        """
        options = self.session_options
        if self.requested != (providers.CPU,) or not (options is None or isinstance(options, Mapping)):
            return self
        if any("num_threads" in name or name == "execution_mode" for name in options or ()):
            return self
        if threads.own(options) == {"intra_op_num_threads": 1}:
            return self
        return replace(self, session_options={**(options or {}), "intra_op_num_threads": 1})

    def _session(self, payload: Payload, wanted: Sequence[tuple[str, Mapping[str, str]]]) -> OrtSession:
        path = payload.path
        folder, source = None, path or b""
        if path is None:
            folder = payload.loaded.path.parent if payload.loaded.path is not None else None
            if folder is not None and payload.loaded.mapped and leads_out(payload.adapted.proto, folder):
                proto, folder = without_links(payload.loaded.whole(payload.adapted.proto), folder)
                source = proto.SerializeToString()
            else:
                source = payload.bytes()
        wished = threads.with_threads(self.session_options)
        if payload.lowering and self.requested == (providers.CPU,):
            wished = weights_alone.with_entries(payload.adapted.facts.contents, wished)
        options = make_session_options(wished, external_data_folder=str(folder) if folder is not None else None)
        if any(name.startswith(providers.OPENVINO) for name, _ in wanted):
            from onnx_multi_backend.engines.ort.openvino_ep import threads as openvino_threads

            wanted = [(name, openvino_threads.with_threads(name, given, self.device)) for name, given in wanted]
        if payload.keep_in is not None:
            from onnx_multi_backend.engines.ort import caching

            caching.write_into(options, payload.keep_in, payload.adapted.proto)
        ort = runtime.load()
        session_class = runtime.session_class()
        if isinstance(self.session_options, ort.SessionOptions):  # adding providers would alter the user's object
            given = {"providers": [(n, dict(o)) for n, o in wanted]}
        else:
            self.add_providers(options, wanted, payload.shapes)
            given = {}
        without = harmful_optimizers(payload.adapted.facts.contents)
        passes = {change.pass_name for change in payload.adapted.changes}
        without += [
            optimizer for name, optimizer in ((_TWICE, MERGING), (BIASES_ADDED, JOINING_BIASES)) if name in passes
        ]
        native = session_class(source, options, enable_fallback=0, disabled_optimizers=without, **given)
        let_go_of_bytes(native)
        held = native.get_providers()
        for name, _ in wanted:
            if name not in held:
                raise DeviceUnavailableError(
                    f"{self.preset}: ONNX Runtime built the session without {name} (it holds {', '.join(held)}). "
                    f"Set {option_words.given('session_options', {'log_severity_level': 0})} to see why."
                )
        alone = self.requested == (providers.CPU,)
        return make_session(native, of=None if alone else payload.adapted.facts.contents)

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


def _refused(error: Exception) -> RefusedError:
    return RefusedError(
        errors.first_line(error),
        lacks_kernel=isinstance(error, errors.not_implemented()),
        lacks_memory=errors.is_of_memory(error),
    )
