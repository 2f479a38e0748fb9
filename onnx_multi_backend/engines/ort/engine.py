# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as the rewriting asks it: which nodes its execution providers take, and which they compute wrongly."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from onnx import ModelProto, NodeProto, TypeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.engine import Defect, Engine, answer, digest_of, kept
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.intervals.beyond_int32 import reads_beyond
from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.names import LEFT
from onnx_multi_backend.adapt.site import Rule, Site
from onnx_multi_backend.engines import deadly
from onnx_multi_backend.engines.inlined_calls import calls_inlined
from onnx_multi_backend.engines.onnx_quantizers import quantizers_of_onnx
from onnx_multi_backend.engines.ort import defects, errors, providers, runtime
from onnx_multi_backend.engines.ort.attaching import attach
from onnx_multi_backend.engines.ort.chosen_branches import of_branches
from onnx_multi_backend.engines.ort.deadly import EVER, flat_indices, folded, short_frames, short_images, too_many_parts
from onnx_multi_backend.engines.ort.deadly_of_nothing import of_nothing
from onnx_multi_backend.engines.ort.empty_values import (
    DEADLY,
    DEADLY_BEFORE_1_32,
    WRONG,
    WRONG_BEFORE_1_32,
    guarded,
    guarded_if_left,
)
from onnx_multi_backend.engines.ort.hidden_initializers import initializers_renamed
from onnx_multi_backend.engines.ort.limits import OrtLimits
from onnx_multi_backend.engines.ort.malformed_weights import malformed_weights
from onnx_multi_backend.engines.ort.normalizations import MINOR
from onnx_multi_backend.engines.ort.openvino_ep.among_others import among_others, why_refused
from onnx_multi_backend.engines.ort.openvino_ep.empty_inputs import with_constants
from onnx_multi_backend.engines.ort.optimizers.harmful import MERGING
from onnx_multi_backend.engines.ort.options import make_session_options, of_custom_operators
from onnx_multi_backend.engines.ort.records import Record, record
from onnx_multi_backend.engines.ort.session import OrtSession, make_session
from onnx_multi_backend.engines.ort.truncated_flags import flags_apart
from onnx_multi_backend.engines.ort.unsafe import why_unsafe
from onnx_multi_backend.engines.placement import Fallback
from onnx_multi_backend.engines.results_passed_on import loop_states_apart, results_apart
from onnx_multi_backend.engines.session import Payload
from onnx_multi_backend.engines.target import Lost, Target
from onnx_multi_backend.engines.vast_shapes import without_vast
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import canonical
from onnx_multi_backend.models.tensors import type_from_string


@dataclass(frozen=True)
class OrtEngine(Target):
    """ONNX Runtime with some execution providers, as it is asked about one node at a time.

    Attributes
    ----------
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
    library : str
        The plugin's library that the first provider comes from, where the user named it.
    leaves_constants : bool
        Whether nodes that read constants beyond int32 count as wrong.
    leaves_named : bool
        Whether nodes that a refusal names are left to the CPU provider.
    precision_policy : {"warn", "strict"}
        What happens to float64 that a provider computes in float32.
    beside_narrow : bool
        Whether what is written for it may come to a provider that computes wide types in narrower ones.
    """

    providers: tuple[tuple[str, Mapping[str, str]], ...]
    device: Device
    fallback: Fallback = "partial"
    session_options: Any = None
    shape_options: Any = None
    strict: bool = False
    library: str = ""
    precision_policy: str = "warn"
    beside_narrow: bool = False
    leaves_constants: bool = False
    leaves_named: bool = False

    @property
    def limits(self) -> OrtLimits:
        """What ONNX Runtime takes with these providers."""
        return OrtLimits(
            packed_outputs=not any(known.zero_packed_outputs for known in self.records),
            inside=next((known.inside for known in self.records if known.inside is not None), None),
            reads_flags=all(known.reads_flags for known in self.records),
            hands_optionals_on=all(known.hands_optionals_on for known in self.records),
        )

    @functools.cached_property
    def records(self) -> tuple[Record, ...]:
        """What is known of the requested providers."""
        return tuple(record(n, plugin=bool(self.library and i == 0) or None) for i, n in enumerate(self.requested))

    @property
    def requested(self) -> tuple[str, ...]:
        """Names of the providers that were asked for."""
        return tuple(name for name, _ in self.providers)

    @property
    def ignores_opset(self) -> bool:
        """Kernels of the CPU provider differ by opset; another provider's answer does not, and costs more to ask for."""
        return self.strict or (self.requested != (providers.CPU,) and self.fallback != "full")

    @property
    def identity(self) -> Hashable:
        """Providers, their options, the device and custom operators decide what is accepted."""
        options = tuple(tuple(sorted(given.items())) for _, given in self.providers)
        custom = repr(of_custom_operators(self.session_options))
        return self.requested, options, self.device.text, self.strict, self.library, custom

    def engines_to_ask(self, *, taken: bool) -> Sequence[tuple[Engine, Engine]]:
        """With CPU nodes allowed, whatever takes a node serves; but one node at least has to run as requested.

        What the CPU provider lacks too may need another opset: then it is asked alone. A provider may leave a small
        node to the CPU that it takes among others: what takes a node's place is only asked to run at all, and the
        placement of the whole decides. The provider is asked first, because it may compute such a node wrongly.
        """
        cpu = self._cpu_alone
        if self.records[0].slow_builds:  # it builds an engine for minutes: the CPU provider is asked
            return [(cpu, cpu)]
        if self.requested == (providers.CPU,):
            return [(self, self)]
        if self.fallback == "full" or self.requested[0] == providers.CPU:
            return [(self, self), (cpu, cpu)]
        strict = replace(self, strict=True)
        if self.fallback == "none":
            return [(strict, strict)]
        requested = [(strict, self), (strict, cpu)]
        return requested if taken else [(self, self), (cpu, cpu), *requested]

    @property
    def _leaves(self) -> bool:
        """Whether a node can be written so that the CPU provider computes it."""
        return self.fallback != "none" and not self.strict and any(known.leaves_text for known in self.records)

    @property
    def own_rules(self) -> tuple[Rule, ...]:
        """Those of the providers."""
        return tuple(rule for known in self.records for rule in known.rules)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What a provider computes wrongly is left to the CPU provider, where it leaves anything on purpose.

        A node that no provider has is not: its If would be written, and refused with all that is around it. Of one that the CPU provider
        computes wrongly too, or fails to run, what `exact_integers` writes is left; a minor defect does not count.
        """
        if not self._leaves:
            return ()
        from onnx_multi_backend.adapt.rules.exact_integers import exact_integers
        from onnx_multi_backend.engines.ort.openvino_ep.left_to_cpu import left_to_cpu, rewritten_and_left

        @functools.wraps(left_to_cpu)
        def of_what_it_has(site: Site) -> Iterator[ModelProto]:
            of_cpu = defects.CPU.find(site)
            if of_cpu is not None and not of_cpu.minor:
                yield from rewritten_and_left(site, exact_integers)
            elif self.find_defect(site) is not None or self._cpu_alone.takes(site):
                yield from left_to_cpu(site)

        return (of_what_it_has,)

    @property
    def _cpu_alone(self) -> OrtEngine:
        """The same with the CPU provider alone."""
        return replace(self, providers=((providers.CPU, {}),), library="", beside_narrow=self.narrows)

    def takes(self, site: Site) -> bool:
        """Whether a session is built for a node in the opset that it is to have."""
        model = ModelProto()
        model.CopyFrom(site.model)
        for given in model.opset_import:
            if not canonical(given.domain):
                given.version = site.target
        return answer(self, model) is None

    def wary(self) -> OrtEngine | None:
        """The same, with nodes left to the CPU provider that read constants beyond int32."""
        return replace(self, leaves_constants=True) if self._leaves else None

    def leaving_named(self) -> OrtEngine | None:
        """The same, with nodes left to the CPU provider that a refusal names."""
        return replace(self, leaves_named=True) if self._leaves else None

    def leaving(self, payload: Payload, wrong: Sequence[NodeProto]) -> tuple[Payload, tuple[Adaptation, ...]]:
        """The payload with nodes left to the CPU provider that another one would compute wrongly."""
        if not self._leaves:
            return payload, ()
        from onnx_multi_backend.engines.ort.openvino_ep.left_nodes import with_nodes_left

        made = {tuple(node.output) for node in wrong}

        def of_these(model: ModelProto, types: object) -> list[int]:
            return [i for i, node in enumerate(model.graph.node) if tuple(node.output) in made]

        reason = "the OpenVINO execution provider computes these nodes wrongly, and refuses the model where they are rewritten"
        return with_nodes_left(payload, of_these, "nodes computed wrongly", reason, hides_bodies=True)

    def disarmed(self, payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
        """The payload with loops that the CPU provider computes, where they would end another one's process, and without sizes that are only declared.

        What dies of tensors without elements is computed only of others where the CPU provider alone computes.
        """
        alone = self.requested == (providers.CPU,)
        changes: tuple[Adaptation, ...] = ()
        mends = (
            calls_inlined,
            initializers_renamed,
            quantizers_of_onnx,
            flags_apart,
            guarded if alone else guarded_if_left,
        )
        for mend in (*mends, results_apart):  # the last one also looks at the branches of `guarded`
            payload, more = payload.after(mend)
            changes = (*changes, *more)
        if alone:
            return payload, changes
        if not any(known.mends_models for known in self.records):
            return payload, changes
        from onnx_multi_backend.engines.across_nodes.plain_forms import plain_forms
        from onnx_multi_backend.engines.ort.openvino_ep.raw_constants import in_raw_data

        payload, raw = in_raw_data(payload)  # single nodes are asked about with their constants
        payload, plain = payload.after(plain_forms)
        payload, states = payload.after(loop_states_apart)
        changes = (*changes, *raw, *plain, *states)
        if not any(known.forgets_ranks for known in self.records):
            return payload, changes
        from onnx_multi_backend.engines.ort.openvino_ep.confirmed_sizes import with_confirmed_sizes

        payload, sizes = with_confirmed_sizes(payload)
        changes = (*changes, *sizes)
        if not self._leaves:
            return payload, changes
        from onnx_multi_backend.engines.ort.openvino_ep.left_to_cpu import loops_left

        payload, loops = loops_left(payload)
        return payload, (*changes, *loops)

    def may_have_defect(self, node: NodeProto, facts: Facts) -> bool:
        """Whether `find_defect` may find a defect of a node."""
        if defects.CPU.may_have_defect(node, facts):
            return True
        for known in self.records:
            if known.defects is not defects.NONE and known.defects.may_have_defect(node, facts):
                return True
        return False

    @property
    def defect_operators(self) -> frozenset[str]:
        """The operators of which that may be true."""
        return frozenset(defects.CPU.operators).union(*(known.defects.operators for known in self.records))

    @property
    def minor_operators(self) -> frozenset[str]:
        """Those of which the CPU provider alone has defects, and minor ones."""
        return MINOR.difference(*(known.defects.operators for known in self.records))

    def deadly(self, facts: Facts) -> list[tuple[NodeProto, str]]:
        """The nodes that end the process, as far as constants tell. The CPU provider computes constants of all of them."""
        of_providers = {op_type: why for known in self.records for op_type, why in known.deadly.items()}
        found = deadly.find(facts.contents, {**EVER, **of_providers})
        if found:  # the release is asked for where it matters alone
            found = deadly.find(facts.contents, {**folded(), **of_providers})
        contents = facts.contents
        others = (of_nothing, flat_indices, short_frames, short_images, too_many_parts, malformed_weights)
        return [*found, *(entry for look in others for entry in look(contents))]

    def may_have_integer_defect(self, node: NodeProto, read: list[Value]) -> bool:
        """The same, because of the integers that it reads."""
        if self.leaves_constants and any(not value.in_int32 for value in read):
            return True
        return defects.CPU.integers(node, read) or any(known.defects.integers(node, read) for known in self.records)

    @property
    def integer_operators(self) -> frozenset[str] | None:
        """The operators of which that may be true; None where the node has to be looked at."""
        of_each = [table.integer_operators for table in (defects.CPU, *(known.defects for known in self.records))]
        named = [operators for operators in of_each if operators is not None]
        return frozenset().union(*named) if len(named) == len(of_each) else None

    @property
    def narrows(self) -> bool:
        """Whether a requested provider computes wide types in narrower ones."""
        return any(known.narrows for known in self.records)

    @property
    def wrong_when_empty(self) -> frozenset[str]:
        """Operators that a requested provider or the CPU provider gets wrong of tensors without elements."""
        of_cpu = WRONG_BEFORE_1_32 if applies({"onnxruntime": "<1.32"}) else WRONG
        return of_cpu.union(*(known.wrong_when_empty for known in self.records))

    @property
    def leaves_empty(self) -> bool:
        """Whether a requested provider does."""
        return any(known.takes_no_empty_tensors for known in self.records)

    @property
    def wrong_in_empty_runs(self) -> frozenset[str]:
        """Those that end the process or are wrong without a word, and what a requested provider gets wrong."""
        of_cpu = DEADLY_BEFORE_1_32 if applies({"onnxruntime": "<1.32"}) else DEADLY
        return of_cpu.union(*(known.wrong_in_empty_runs for known in self.records))

    @property
    def folds_exactly(self) -> bool:
        """The CPU provider computes constants ahead, unless the user's session options are to leave the graph as it is."""
        return not self.session_options

    @property
    def values_lost(self) -> Lost:
        """Operators that may lose NaN on a requested provider."""
        return next((known.values_lost for known in self.records if known.values_lost), {})

    def find_defect(self, site: Site, *, written: bool = False) -> Defect | None:
        """Why ONNX Runtime computes a node wrongly, or refuses it only when it runs: that depends on who computes it."""
        of_cpu = defects.CPU.find(site) or (defects.CPU.special(site) if written else None)
        if of_cpu is not None and of_cpu.deadly:  # it computes constants, whoever computes the rest
            return of_cpu
        if of_cpu is not None and (
            (of_cpu.minor and LEFT in site.node.name) or (of_cpu.wide and (self.narrows or self.beside_narrow))
        ):
            of_cpu = None
        if self.strict:
            of_cpu = None
        for name, known in zip(self.requested, self.records, strict=True):
            if known.leaves_text and LEFT in site.node.name:
                continue
            if self.leaves_constants and reads_beyond(site):
                return Defect("a constant is beyond what int32 holds", wrong=True, provider=name)
            defect = known.defects.find(site) or (known.defects.special(site) if written else None)
            # Of what the CPU provider alone gets wrong, another one may have a kernel.
            has_own = of_cpu is not None and of_cpu.provider not in ("", name)
            if not (defect or of_cpu) or (known.defects is defects.NONE and not has_own):
                continue
            # What both get wrong is told for the one that takes the node itself.
            held = site.held and known.mixes_nodes and of_cpu is None
            unasked = held or (defect is not None and (defect.deadly or defect.grouped))
            if unasked or known.slow_builds or self._takes(name, site):
                if defect is not None:
                    return defect._replace(provider=name)
                return of_cpu if self._may_be_left(site) else None
        return of_cpu

    def _may_be_left(self, site: Site) -> bool:
        """Whether the CPU provider may compute a node though another one takes it: it computes constants, and what cannot be asked about."""
        known = all(site.is_known(name) for name in site.node.input if name)
        return known or not _has_ranks(site.model)

    def _takes(self, provider: str, site: Site) -> bool:
        """Whether one of the requested providers runs a node; where it cannot be asked, the placement of the whole tells.

        It cannot without types, and not without ranks either, which ONNX Runtime may infer from the rest of a model.
        """
        if not _has_ranks(site.model):
            return True
        i = self.requested.index(provider)
        alone = replace(self, providers=self.providers[i : i + 1], strict=True)
        return answer(alone, among_others(site.model, self.records[i].least_nodes)) is None

    def unsafe(self, model: ModelProto, session: OrtSession) -> str | None:
        """Why a session must not run; None: it may."""
        breaking = [n for n, known in zip(self.requested, self.records, strict=True) if known.breaks_memory]
        return why_unsafe(model, session.placement(), breaking) if breaking else None

    @property
    def loses_empty_inputs(self) -> bool:
        """Whether a model may be taken once its inputs without elements are constants."""
        return any(known.loses_empty_inputs for known in self.records)

    def accepts(self, model: ModelProto) -> str | None:
        """None when a session can be built for this (small) model, else ONNX Runtime's complaint."""
        if dead := self.deadly(Facts(model)):
            return f"it would end the engine's process: {dead[0][1]}"
        if self._leaves and any(LEFT in str(node.name) for node in model.graph.node):
            return self._cpu_alone.accepts(model)  # shown alone, it would be taken
        if self._leaves and (words := why_refused(model)) is not None:
            return words
        words = self._complaint(model)
        if words is None or not self.loses_empty_inputs:
            return words
        other, names = with_constants(model)
        return self._complaint(other) and words if names else words

    def _complaint(self, model: ModelProto) -> str | None:
        shown = shown_once(replace(self, strict=False), model)
        if shown.complaint is None and shown.elsewhere and self.strict:
            return f"{self.requested[0]} does not take it"
        return shown.complaint

    def apart(self, model: ModelProto, *, bodies: bool) -> tuple[ModelProto, set[str]]:
        """The model without groups of nodes that wait for themselves, and the names of its new nodes; see `computed_twice`."""
        joining = [n for n, known in zip(self.requested, self.records, strict=True) if known.joins_lone_nodes]
        if not joining:
            return model, set()
        from onnx_multi_backend.engines.ort.openvino_ep.computed_twice import computed_twice

        return computed_twice(model, lambda site: self._takes(joining[0], site), bodies=bodies)

    def show(self, model: ModelProto) -> Shown:
        """Build a session for a (small) model."""
        if self.requested != (providers.CPU,):
            model = without_vast(model)
        model, twice = self.apart(model, bodies=True)
        without = [*([MERGING] if twice else []), *of_branches(Contents(model))]
        try:
            options = make_session_options(of_custom_operators(self.session_options))
            options.intra_op_num_threads = 1
            self.add_providers(options, self.providers, None)
            native = runtime.session_class()(
                model.SerializeToString(), options, enable_fallback=0, disabled_optimizers=without
            )
            session = make_session(native)
        except errors.all_errors() as error:
            return Shown(errors.first_line(error))
        if (words := self.unsafe(model, session)) is not None:
            return Shown(words)
        return Shown(elsewhere=any(node.provider not in self.requested for node in session.placement()))

    def output_type(self, model: ModelProto, name: str) -> TypeProto | None:
        """The type that ONNX Runtime infers for an output: it knows operators that onnx does not."""
        try:
            session = runtime.session_class()(
                model.SerializeToString(),
                make_session_options(of_custom_operators(self.session_options)),
                providers=[providers.CPU],
            )
        except errors.all_errors():
            return None
        found = next(o for o in session.get_outputs() if o.name == name)
        return type_from_string(found.type, found.shape)

    def add_providers(
        self,
        options: Any,
        wanted: Sequence[tuple[str, Mapping[str, str]]],
        shapes: Mapping[str, tuple[int, ...]] | None,
    ) -> None:
        """Add providers to the options of a session."""
        for i, (name, given) in enumerate(wanted):
            if name == providers.CPU and len(wanted) == 1:
                continue  # every session has it
            chosen = dict(given)
            if i == 0 and shapes is not None and self.shape_options is not None:
                chosen.update(self.shape_options(shapes))
            attach(options, name, chosen, device=self.device, library=self.library if i == 0 else "", who=self.preset)


class Shown(NamedTuple):
    """What came of a model of one node.

    Attributes
    ----------
    complaint : str or None
        ONNX Runtime's; None where it built a session.
    elsewhere : bool
        Whether a node of it runs on another provider than the requested ones.
    """

    complaint: str | None = None
    elsewhere: bool = False


#: The last ones: whether a provider takes a node, and whether anyone does, is asked of the same session.
_shown: OrderedDict[tuple[Hashable, bytes], Shown] = OrderedDict()


def shown_once(engine: OrtEngine, model: ModelProto) -> Shown:
    """What comes of a model; the same one is shown once."""
    return kept(_shown, (engine.identity, digest_of(model)), lambda: engine.show(model))


def _has_ranks(model: ModelProto) -> bool:
    """Whether a model declares the ranks of the tensors that it is given."""
    read = [value for value in model.graph.input if value.type.WhichOneof("value") != "sequence_type"]
    return all(value.type.tensor_type.HasField("shape") for value in read)
