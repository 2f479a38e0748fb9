# SPDX-License-Identifier: Apache-2.0
"""Of all int8 models of a float model the one that is as accurate as asked, and the fastest; or none."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx import ModelProto

from onnx_multi_backend.calibration import speed
from onnx_multi_backend.calibration.accuracy import Accuracy, Metric, MetricDrop, Reference, is_near, least_sqnr
from onnx_multi_backend.calibration.agreement import Agreement, Engines
from onnx_multi_backend.calibration.batches import Spool, read
from onnx_multi_backend.calibration.collecting import collect
from onnx_multi_backend.calibration.layers import Layer, comparable, excluded, find_layers, with_sensitivity
from onnx_multi_backend.calibration.progress import Progress
from onnx_multi_backend.calibration.report import ACCURACY, AGREEMENT, EXCLUDED, SPEED, LayerReport, QuantizationReport
from onnx_multi_backend.calibration.source import FloatModel, for_qdq
from onnx_multi_backend.calibration.targets import QuantizationTarget
from onnx_multi_backend.calibration.writers import NncfWriter, OrtWriter, Writer, nncf_is_installed
from onnx_multi_backend.errors import InvalidModelError, RunError, UnsupportedModelError
from onnx_multi_backend.host import processor, versions
from onnx_multi_backend.presets.registry import get_preset
from onnx_multi_backend.running.prepared import PreparedModel


@dataclass(frozen=True)
class QuantizedModel:
    """What `quantize` returns; every preset's `prepare` takes it as it is.

    Attributes
    ----------
    model : onnx.ModelProto
        With Q/DQ nodes; the float model where int8 is not faster or costs too much accuracy.
    report : QuantizationReport
    """

    model: ModelProto
    report: QuantizationReport


@dataclass(frozen=True)
class Limits:
    """How much int8 may cost."""

    min_cosine: float | None
    max_drop: float | None

    def hold(self, accuracy: Accuracy) -> bool:
        near = self.min_cosine is None or all(is_near(output, self.min_cosine) for output in accuracy.outputs)
        return near and self.drop_holds(accuracy.metric)

    def drop_holds(self, drop: MetricDrop | None) -> bool:
        return self.max_drop is None or (drop is not None and drop.bound <= self.max_drop)

    def __str__(self) -> str:
        parts = [] if self.min_cosine is None else [f"a cosine of {self.min_cosine:g}"]
        if self.min_cosine is not None and self.min_cosine > 0:
            parts.append(f"an SQNR of {least_sqnr(self.min_cosine):.1f} dB")
        return " and ".join(parts + ([] if self.max_drop is None else [f"a drop of at most {self.max_drop:g}"]))


@dataclass(frozen=True)
class _Candidate:
    """An int8 model with what was measured of it.

    Its agreement is None where it was not measured: the target is not `portable`, there is no other engine, or accuracy does not hold.
    """

    writer: Writer
    model: ModelProto
    prepared: PreparedModel
    quantized: frozenset[str]
    accuracy: Accuracy
    agreement: Agreement | None


class Quantization:
    """One call of `quantize`."""

    def __init__(
        self,
        given: FloatModel,
        spool: Spool,
        chosen: QuantizationTarget,
        method: str,
        exclude: Sequence[str],
        limits: Limits,
        shown: Progress,
    ) -> None:
        self._given, self._spool, self._target, self._method = given, spool, chosen, method
        self._limits, self._shown = limits, shown
        self._float = for_qdq(given)
        with shown.each("Collecting ranges", read(spool.calibration), len(spool.calibration)) as batches:
            self._ranges = collect(self._float, batches, method)
        if spool.independent:  # they are not to be infinite or NaN either
            collect(self._float, read([*spool.held_back, *spool.proof]), "minmax")
        self._left = excluded(self._float, given, exclude)
        every = find_layers(self._float, self._ranges, chosen.layout)
        self._layers = [layer for layer in every if layer.name not in self._left]
        self._excluded = [layer for layer in every if layer.name in self._left]
        self._preset = get_preset(chosen.preset)
        self._plain = self._preset.prepare(self._float.proto, cache_dir=False)
        self._notes: list[str] = []
        self._too_slow: set[str] = set()
        self._rejected: _Candidate | None = None
        self._engines: Engines | None = None
        self._apart: _Candidate | None = None  # accurate, and engines do not agree on it

    def run(self, metric: Metric | None, metric_range: tuple[float, float], *, require_speedup: bool) -> QuantizedModel:
        names = comparable(self._float)
        read_held_back = functools.partial(self._spool.read, self._spool.held_back)
        self._reference = Reference(self._plain.run, read_held_back, names, metric, metric_range)
        self._proof = Reference(
            self._plain.run, functools.partial(self._spool.read, self._spool.proof), names, metric, metric_range
        )
        if self._target.agrees:
            self._engines = Engines(self._target.preset, self._spool.every, comparable(self._float, "f"))
        if not self._layers:
            return self._stays_float("no layer of it can be quantized", None, None)
        if not names and metric is None:
            return self._stays_float(
                "none of its outputs is a tensor of numbers, so nothing can be compared", None, None
            )
        writers = self._writers()
        with self._shown.each("Measuring layers", self._layers, len(self._layers)) as layers:
            self._layers = with_sensitivity(layers, self._float, writers[0], self._spool.calibration)
        accurate = [found for writer in writers if (found := self._accurate(writer)) is not None]
        if not accurate:
            return self._stays_float(f"no int8 model has {self._limits}", self._rejected, None)
        candidates = list(itertools.chain.from_iterable(map(self._agreeing, accurate)))
        if not candidates:
            reason = (
                f"engines do not agree on any int8 model of it within one quantization step: {accurate[0].agreement}"
            )
            return self._stays_float(reason, accurate[0], None)
        best = candidates[0]
        if not self._target.timed:
            return self._proven(best, None)
        feeds = next(read(self._spool.held_back)).feeds
        for other in candidates[1:]:
            if speed.compare(_run(other, feeds), _run(best, feeds)).faster:
                best = other
        if require_speedup:
            best = self._without_slow_groups(best, feeds)
        ratio = speed.compare(_run(best, feeds), lambda: self._plain.run(feeds))
        if require_speedup and not ratio.faster:
            noise = f", which noise may make ({ratio.low:.2f} to {ratio.high:.2f})" if ratio.median < 1 else ""
            reason = f"int8 is not faster on this machine: {ratio.median:.2f} times the float model's time on {self._target.preset}{noise}"
            if self._apart is not None:
                reason += (
                    f", with the {len(best.quantized)} of {len(self._layers)} layers in int8 that engines agree on"
                )
            return self._stays_float(reason, best, ratio)
        return self._proven(best, ratio)

    def _proven(self, best: _Candidate, ratio: speed.Ratio | None) -> QuantizedModel:
        """The chosen model, its metric measured on batches that had no part in the choice: the bound is of one model then."""
        accuracy = best.accuracy
        if accuracy.metric is not None:
            accuracy = replace(accuracy, metric=self._proof.compare(best.prepared.run).metric)
            if not self._limits.drop_holds(accuracy.metric):
                reason = f"the batches kept for the proof do not show a drop of at most {self._limits.max_drop:g}"
                return self._stays_float(reason, replace(best, accuracy=accuracy), ratio)
        report = self._report(accuracy, best.agreement, ratio, writer=best.writer.name, quantized=best.quantized)
        return QuantizedModel(best.model, report)

    def _writers(self) -> list[Writer]:
        layout = self._target.layout
        writers: list[Writer] = [OrtWriter(self._float, self._ranges, layout)]
        if self._target.name == "openvino":
            if nncf_is_installed():
                names = [layer.name for layer in (*self._layers, *self._excluded)]
                writers.append(
                    NncfWriter(self._float, self._spool.calibration, names, self._left, layout.narrow_weights)
                )
            else:
                self._notes.append("NNCF is not installed, and was not tried: pip install nncf")
        return writers

    def _accurate(self, writer: Writer) -> _Candidate | None:
        """The model with the fewest float layers that is accurate; None where none is. The most sensitive layers stay float first."""
        ranked = sorted(self._layers, key=lambda layer: layer.sensitivity, reverse=True)
        return self._fewest_float("sensitive", writer, ranked, lambda found: self._limits.hold(found.accuracy))

    def _agreeing(self, accurate: _Candidate) -> list[_Candidate]:
        """The models that engines agree on: the accurate one, or two that have its last layers in int8, and its first.

        Engines round what lies between layers differently. Where a value is at the edge of a step, the next layer reads another one, and
        each layer after that adds to the difference. So what counts is how many layers there are in a row, not how sensitive they are.
        """
        if self._holds(accurate):
            return [accurate]
        self._apart = accurate
        layers = [layer for layer in self._layers if layer.name in accurate.quantized]
        found = [
            self._fewest_float("first", accurate.writer, layers[1:], self._holds),
            self._fewest_float("last", accurate.writer, layers[-2::-1], self._holds),
        ]
        return [candidate for candidate in found if candidate is not None]

    def _holds(self, found: _Candidate) -> bool:
        return self._limits.hold(found.accuracy) and (found.agreement is None or found.agreement.holds)

    def _fewest_float(
        self, which: str, writer: Writer, ranked: Sequence[Layer], holds: Callable[[_Candidate], bool]
    ) -> _Candidate | None:
        """The model with the fewest float layers that holds, where they stay float in this order; None where none does."""
        failed, good = -1, None
        count = 0
        with self._shown.bar(f"Keeping {which} layers float ({writer.name})") as step:
            while count < len(ranked):
                found = self._measured(writer, ranked[count:])
                step()
                if found is not None and holds(found):
                    good = found
                    break
                if found is not None:
                    self._rejected = found
                failed, count = count, min(max(count + 1, count * 3 // 2), max(len(ranked) - 1, count + 1))
            while good is not None and count - failed > 1:  # in between, fewer may do
                middle = (failed + count) // 2
                found = self._measured(writer, ranked[middle:])
                step()
                if found is not None and holds(found):
                    count, good = middle, found
                else:
                    failed = middle
        return good

    def _measured(self, writer: Writer, layers: Sequence[Layer]) -> _Candidate | None:
        """Quantize these layers and measure; None where the engine refuses the model."""
        quantized = frozenset(layer.name for layer in layers)
        try:
            made = writer(sorted(quantized))
            prepared = self._preset.prepare(made, cache_dir=False)
            accuracy = self._reference.compare(prepared.run)
        except (InvalidModelError, UnsupportedModelError, RunError) as error:
            self._notes.append(f"{self._target.preset} does not run a model of {writer.name}: {error}")
            return None
        agreement = None
        if self._engines is not None and self._limits.hold(accuracy):
            agreement = self._engines.compare(made, prepared.run)
        return _Candidate(writer, made, prepared, quantized, accuracy, agreement)

    def _without_slow_groups(self, best: _Candidate, feeds: Mapping[str, Any]) -> _Candidate:
        """Leave those kinds of layers float that int8 makes slower."""
        groups = sorted({layer.group for layer in self._layers if layer.name in best.quantized})
        for group in groups if len(groups) > 1 else ():
            kept = [layer for layer in self._layers if layer.name in best.quantized and layer.group != group]
            found = self._measured(best.writer, kept) if kept else None
            if found is None or not self._holds(found):
                continue
            if speed.compare(_run(found, feeds), _run(best, feeds)).faster:
                self._too_slow.add(group)
                best = found
        return best

    def _stays_float(self, reason: str, rejected: _Candidate | None, ratio: speed.Ratio | None) -> QuantizedModel:
        accuracy = Accuracy((), None) if rejected is None else rejected.accuracy
        agreement = None if rejected is None else rejected.agreement
        report = self._report(accuracy, agreement, ratio, writer="", quantized=frozenset(), reason=reason)
        return QuantizedModel(self._given.proto, report)

    def _report(
        self,
        accuracy: Accuracy,
        agreement: Agreement | None,
        ratio: speed.Ratio | None,
        *,
        writer: str,
        quantized: frozenset[str],
        reason: str = "",
    ) -> QuantizationReport:
        def layer(found: Layer) -> LayerReport:
            if found.name in quantized:
                why = ""
            elif found in self._excluded:
                why = EXCLUDED
            elif found.group in self._too_slow:
                why = SPEED
            else:
                why = AGREEMENT if self._apart is not None and found.name in self._apart.quantized else ACCURACY
            return LayerReport(found.name, found.op_type, found.group, found.sensitivity, why)

        notes = [*self._notes, *(self._engines.notes if self._engines is not None else ())]
        if self._apart is not None:
            notes.append(
                f"with {len(self._apart.quantized)} layers in int8, results would differ by {self._apart.agreement}: what stays float between "
                "layers is rounded differently, a value at the edge of a step falls on either side, and the layers after it add to that"
            )
        if not self._spool.independent:
            notes.append(
                "there were too few batches to hold some back: accuracy was measured on the data that the ranges are from"
            )
        packages = ("onnxruntime", "openvino", "nncf", "onnx")
        return QuantizationReport(
            model=self._given.label,
            target=self._target.name,
            preset=self._target.preset,
            method=self._method,
            writer=writer,
            processor=str(processor.current()),
            versions={name: version for name in packages if (version := versions.installed_version(name))},
            quantized=bool(quantized),
            reason=reason,
            calibration_batches=len(self._spool.calibration),
            held_back_batches=len(self._spool.held_back),
            independent=self._spool.independent,
            accuracy=accuracy,
            agreement=agreement,
            speed=ratio,
            layers=tuple(map(layer, (*self._layers, *self._excluded))),
            notes=tuple(dict.fromkeys(notes)),
        )


def _run(candidate: _Candidate, feeds: Mapping[str, Any]) -> Callable[[], object]:
    return lambda: candidate.prepared.run(feeds)
