# SPDX-License-Identifier: Apache-2.0
"""OpenVINO set up for one device and some properties."""

from __future__ import annotations

import functools
import logging
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnx import ModelProto, NodeProto

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.known_branches import has_computed_steps
from onnx_multi_backend.adapt.rules.lstm_steps import lstm_steps
from onnx_multi_backend.adapt.site import Rule, Site
from onnx_multi_backend.adapt.together import together
from onnx_multi_backend.adapt.unneeded import computes_unneeded, without_unneeded
from onnx_multi_backend.adapt.unneeded_states import has_unread_rows
from onnx_multi_backend.engines import deadly
from onnx_multi_backend.engines.across_nodes.nothing_guarded import nothing_guarded
from onnx_multi_backend.engines.across_nodes.plain_forms import plain_forms
from onnx_multi_backend.engines.across_nodes.quantized.distrusted import SWITCH, in_floating_point
from onnx_multi_backend.engines.defect import worse
from onnx_multi_backend.engines.inlined_calls import calls_inlined
from onnx_multi_backend.engines.onnx_quantizers import quantizers_of_any_width
from onnx_multi_backend.engines.openvino import (
    caching,
    defects,
    exports,
    folding,
    integers,
    mending,
    packed_constants,
    runtime,
    special_values,
    threads,
    tiny,
)
from onnx_multi_backend.engines.openvino.branching import PROPERTIES, BranchingSession, branches
from onnx_multi_backend.engines.openvino.domain_names import domains_shortened
from onnx_multi_backend.engines.openvino.empty_constants import KEEPING, WRONG_IN_EMPTY_RUNS, WRONG_WHEN_ALONE
from onnx_multi_backend.engines.openvino.frontend import read_model, readable
from onnx_multi_backend.engines.openvino.limits import OpenvinoLimits
from onnx_multi_backend.engines.openvino.mends import doubles, extremes
from onnx_multi_backend.engines.openvino.one_bound import without_clips_of_one_bound
from onnx_multi_backend.engines.openvino.open_ranks import wants_ranks
from onnx_multi_backend.engines.openvino.quantized_operators import written_out
from onnx_multi_backend.engines.openvino.session import OpenvinoSession, PortNames, port_names
from onnx_multi_backend.engines.openvino.unsafe import DEADLY, why_not_compiled, why_not_read, why_unsafe
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.results_passed_on import loop_states_apart
from onnx_multi_backend.engines.session import Built, Caching, Payload, RefusedError, Session
from onnx_multi_backend.engines.simplest import why_none
from onnx_multi_backend.engines.target import Lost, Target
from onnx_multi_backend.engines.vast_shapes import without_vast
from onnx_multi_backend.errors import (
    CacheWarning,
    OnnxMultiBackendError,
    OptionError,
    OptionTypeError,
    UnsupportedModelError,
)
from onnx_multi_backend.host.devices import Device
from onnx_multi_backend.models import checks
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.graph_walk import defaults_of
from onnx_multi_backend.models.tensors import dtype_of, onnx_type_string, tensor_info
from onnx_multi_backend.user_warnings import warn

if TYPE_CHECKING:
    from onnx_multi_backend.cache.entry import Entry

logger = logging.getLogger("onnx_multi_backend")

_UNKNOWN_RANK = "support Parameter operation with dynamic rank"
_NO_WORK = ("Input", "Output", "Const", "Reorder", "MemoryInput", "MemoryOutput")


@dataclass(frozen=True)
class OpenvinoTarget(Target):
    """Compiles models on OpenVINO.

    Attributes
    ----------
    device : Device
    properties : mapping of str to value
        OpenVINO's own names, for example ``INFERENCE_PRECISION_HINT``.
    precision_policy : {"warn", "strict"}
        What happens to float64, which is computed in float32.
    """

    device: Device
    properties: Mapping[str, Any]
    requested: tuple[str, ...] = (folding.PROVIDER,)
    precision_policy: str = "warn"
    narrows: bool = True
    runs_alone: bool = True
    exact_in_float: bool = True

    @property
    def limits(self) -> OpenvinoLimits:
        """What OpenVINO accepts."""
        return OpenvinoLimits()

    def disarmed(self, payload: Payload) -> tuple[Payload, tuple[Adaptation, ...]]:
        """The payload without a Clip that its frontend would die of, and without what a loop computes and no result needs.

        Of the latter, the process may end in a loop of no steps. Source: measured with 2026.4, of RoiAlign, and of SplitToSequence beside
        the Abs of float16. Quantized operators of ONNX Runtime are written out here too, so that types can be inferred behind them.
        """
        payload, changes = payload.after(domains_shortened)
        payload, more = payload.after(quantizers_of_any_width)
        changes = (*changes, *more)
        model, more = written_out(payload.adapted.facts.contents)
        if more:
            payload, changes = payload.changed(model, *more), (*changes, *more)
        for mend in (calls_inlined, plain_forms, loop_states_apart):
            payload, more = payload.after(mend)
            changes = (*changes, *more)
        if (found := without_clips_of_one_bound(payload.adapted.facts)) is not None:
            payload, changes = payload.changed(found[0], *found[1]), (*changes, *found[1])
        payload, guarded = payload.after(functools.partial(nothing_guarded, operators=KEEPING, of_inputs=True))
        changes = (*changes, *guarded)
        facts = payload.adapted.facts
        unneeded = any(map(computes_unneeded, facts.contents.of("Loop"))) or has_unread_rows(facts.contents)
        if not unneeded and not has_computed_steps(facts):
            return payload, changes
        model, more = without_unneeded(payload.adapted.proto)
        return (payload.changed(model, *more), (*changes, *more)) if more else (payload, changes)

    def build(self, payload: Payload) -> Built:
        """Read and compile the model, with fixed input shapes where the payload has them."""
        try:
            proto = payload.adapted.proto
            if payload.lowering and (words := why_not_read(payload.adapted.facts.contents)) is not None:
                raise RefusedError(words, lacks_kernel=False)
            model, memory, extra = read_model(payload)
            extra_properties = tiny.properties(proto, model, self.device, self.properties)
            if branching := branches(proto, model, payload.shapes):
                extra_properties = {**extra_properties, **PROPERTIES}
            switched = payload.lowering and self.device.kind == "CPU" and SWITCH not in self.properties
            if switched and (told := in_floating_point(payload.adapted.facts.contents)):
                extra, extra_properties = (*extra, *told), {**extra_properties, SWITCH: "NO"}
            compiled = None
            if (words := why_not_compiled(proto)) is None:
                compiled = self._compile(model, payload.shapes, extra_properties)
                words = why_unsafe(compiled)
            if words is not None:
                raise UnsupportedModelError(
                    f"{self.preset} cannot run {payload.loaded.label}: {words}. Choose an ONNX Runtime preset."
                )
            outputs = [(o.name, tensor_info(o).dtype) for o in proto.graph.output]
            placement: Callable[[], tuple[NodePlacement, ...]] = functools.partial(_placement, compiled, proto)
            if payload.loaded.data is not None:  # found now, because the model holds its weights
                placement = functools.partial(tuple, placement())
            inputs = frozenset(v.name for v in proto.graph.input)
            names = port_names(compiled, model)
            make = BranchingSession if branching else OpenvinoSession
            session = make(compiled, names, inputs, outputs, placement, defaults_of(proto.graph), memory)
            if session.contradicts_declared_types():  # OpenVINO does not read the declared types of outputs
                checks.check(payload.loaded, full=True)
            facts = None
            if payload.keep_in is not None:
                facts = self._keep(session, payload, payload.keep_in, extra_properties)
            return Built(session, extra, facts)
        except OnnxMultiBackendError:
            raise
        except runtime.all_errors() as error:
            self.check_options()
            words = runtime.first_line(error)
            lacks = re.search(r"does not support the following ONNX operations: (.*)", str(error)) is not None
            raise RefusedError(words, lacks_kernel=lacks) from error

    def _keep(
        self, session: OpenvinoSession, payload: Payload, folder: Path, properties: Mapping[str, Any]
    ) -> Mapping[str, Any] | None:
        """Write a compiled model into a folder, and return what `restore` needs; None where it cannot be kept."""
        graph = payload.adapted.proto.graph
        if others := exports.unproven(session.native):
            return {
                "useless": f"OpenVINO's export may bring its layers back wrong: {', '.join(others)}. Each start compiles it"
            }
        try:
            caching.write_into(session.native, folder)
        except (OSError, RuntimeError) as error:
            warn(
                f"{self.preset}: the compiled model of {payload.loaded.label} cannot be kept: {runtime.first_line(error)}",
                CacheWarning,
            )
            return None
        return {
            "inputs": [value.name for value in graph.input],
            "outputs": [(value.name, onnx_type_string(value.type)) for value in graph.output],
            "defaults": sorted(defaults_of(graph)),
            "placement": session.placement(),
            "properties": dict(properties),
            "names": session.names,
            "ports": caching.ports(session.native),
        }

    def caching(self) -> Caching | None:
        """Compiled models of the CPU are kept; other devices have OpenVINO's own cache."""
        parts = caching.parts_of(self.device, self.properties)
        if parts is None:
            return None
        own = sorted(threads.own(self.device, self.properties).items())
        return Caching("openvino", runtime.describe(), (self.preset, *parts, own))

    def restore(self, entry: Entry, facts: Mapping[str, Any]) -> Session:
        """Import a compiled model."""
        failures: tuple[type[Exception], ...] = (OnnxMultiBackendError, *runtime.all_errors())
        try:
            properties = {**facts["properties"], **threads.with_threads(self.device, self.properties)}
            native = caching.restored(entry, self.device, properties)
            if (words := caching.other_ports(native, facts)) is not None:
                raise RefusedError(words, lacks_kernel=False)
            return OpenvinoSession(
                native,
                PortNames(*facts["names"]),
                frozenset(facts["inputs"]),
                [(name, dtype_of(kind)) for name, kind in facts["outputs"]],
                functools.partial(tuple, [NodePlacement(*node) for node in facts["placement"]]),
                frozenset(facts["defaults"]),
                memory=entry,
            )
        except failures as error:
            raise RefusedError(runtime.first_line(error), lacks_kernel=False) from error

    @property
    def identity(self) -> Hashable:
        """The device and the properties decide what is accepted."""
        properties = tuple(sorted((name, repr(value)) for name, value in self.properties.items()))
        return folding.PROVIDER, self.device.text, properties

    def may_have_defect(self, node: NodeProto, facts: Facts) -> bool:
        """Whether `find_defect` may find a defect of a node."""
        return node.op_type not in mending.MENDED and defects.may_have_defect(node, facts)

    @property
    def defect_operators(self) -> frozenset[str]:
        """The operators of which that may be true."""
        return defects.OPERATORS - mending.MENDED

    def deadly(self, facts: Facts) -> list[tuple[NodeProto, str]]:
        """The nodes that end the process, as far as constants tell."""
        return [*deadly.find(facts.contents, DEADLY), *packed_constants.moved(facts.contents)]

    def may_have_integer_defect(self, node: NodeProto, read: list[Value]) -> bool:
        """The same, because of the integers that it reads."""
        return integers.may_have_defect(node, read)

    def find_defect(self, site: Site, *, written: bool = False) -> Defect | None:
        """Why OpenVINO computes a node wrongly, or refuses it only when it runs."""
        known = defects.find(site) if site.op_type not in mending.MENDED else None
        found = worse(known, integers.find(site, written=written))
        guarded = site.op_type in extremes.GUARDED
        return found or (special_values.find(site) if written and not guarded else None)

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What the execution providers leave to ONNX Runtime's kernels."""
        return (lstm_steps,)

    @property
    def values_lost(self) -> Lost:
        """Operators that may lose NaN."""
        return special_values.LOST

    @property
    def dies_of_empty_constants(self) -> bool:
        """OpenVINO does, of Expand, Tile, Trilu and others."""
        return True

    @property
    def wrong_when_empty(self) -> frozenset[str]:
        """Operators that it gets wrong of tensors without elements."""
        return WRONG_WHEN_ALONE

    @property
    def wrong_in_empty_runs(self) -> frozenset[str]:
        """Those that it gets wrong though their shapes are open."""
        return WRONG_IN_EMPTY_RUNS

    def wants_shapes(self, refusal: str) -> bool:
        """Whether OpenVINO has no rank for a tensor that needs one."""
        return wants_ranks(refusal)

    def check_run_options(self, given: object) -> None:
        """There are none, of whatever type."""
        raise OptionTypeError(
            f"OpenVINO has no run options; {type(given).__name__} given as run_options. Set properties in prepare."
        )

    def for_throughput(self) -> OpenvinoTarget:
        """The same target with the performance hint THROUGHPUT: as many streams as serve it best."""
        return replace(self, properties={**self.properties, "PERFORMANCE_HINT": "THROUGHPUT"})

    def accepts(self, model: ModelProto) -> str | None:
        """None when OpenVINO compiles this (small) model, else its complaint."""
        words = self._why_refused(model)
        return None if words is not None and _UNKNOWN_RANK in words else words  # in its place, the node may get a rank

    def _why_refused(self, model: ModelProto) -> str | None:
        contents = Contents(model)
        if (words := why_not_compiled(model) or why_not_read(contents)) is not None:
            return words
        try:
            read = runtime.core().read_model(readable(without_vast(model)).SerializeToString())
            if doubles.has_doubles(contents):
                doubles.sums_in_single(read)
            return why_unsafe(self._compile(read, None))
        except runtime.all_errors() as error:
            return runtime.first_line(error)

    def accepts_all(self, models: Sequence[ModelProto]) -> bool:
        """Whether OpenVINO compiles them side by side: each compilation costs more than many small nodes."""
        if any(why_not_compiled(model) or why_not_read(Contents(model)) for model in models):
            return False
        joined = together(models)
        return joined is not None and self._why_refused(joined) is None

    def check_options(self) -> None:
        """Raise OptionError where OpenVINO compiles nothing with these properties."""
        if (words := why_none(self)) is not None:
            known = ", ".join(runtime.settable_properties(self.device))
            raise OptionError(f"{self.preset}: {words.rstrip('.')}. {self.device} has {known}.")

    def _compile(
        self, read: Any, shapes: Mapping[str, tuple[int, ...]] | None, extra: Mapping[str, Any] | None = None
    ) -> Any:
        if shapes is not None:
            names = {name for port in read.inputs for name in port.names}
            read.reshape({name: list(shape) for name, shape in shapes.items() if name in names})
        properties = {**(extra or {}), **threads.with_threads(self.device, self.properties)}
        return runtime.core().compile_model(read, self.device.text, properties)


def _placement(compiled: Any, model: ModelProto) -> tuple[NodePlacement, ...]:
    return folding.placement(model, _kept(compiled))


def _kept(compiled: Any) -> frozenset[str]:
    """Names of the original layers behind the compiled graph's real work."""
    names: set[str] = set()
    for op, kind in exports.layers(compiled):
        if kind in _NO_WORK:
            continue
        original = op.get_rt_info()["originalLayersNames"]
        names.update(str(original.value if hasattr(original, "value") else original).split(",") or [op.friendly_name])
    return frozenset(names)
