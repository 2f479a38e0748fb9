# SPDX-License-Identifier: Apache-2.0
"""Of all int8 models of a float model the one that is as accurate as asked, and the fastest; or none."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx import ModelProto

from onnx_multi_backend.calibration import speed
from onnx_multi_backend.calibration.accuracy import Accuracy, Metric, MetricDrop, Reference, is_near, least_sqnr
from onnx_multi_backend.calibration.batches import Spool, read
from onnx_multi_backend.calibration.collecting import collect
from onnx_multi_backend.calibration.layers import Layer, comparable, excluded, find_layers, with_sensitivity
from onnx_multi_backend.calibration.progress import Progress
from onnx_multi_backend.calibration.report import ACCURACY, EXCLUDED, SPEED, LayerReport, QuantizationReport
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
    """An int8 model with what was measured of it."""

    writer: Writer
    model: ModelProto
    prepared: PreparedModel
    quantized: frozenset[str]
    accuracy: Accuracy


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

    def run(self, metric: Metric | None, metric_range: tuple[float, float], *, require_speedup: bool) -> QuantizedModel:
        names = comparable(self._float)
        read_held_back = functools.partial(self._spool.read, self._spool.held_back)
        self._reference = Reference(self._plain.run, read_held_back, names, metric, metric_range)
        self._proof = Reference(
            self._plain.run, functools.partial(self._spool.read, self._spool.proof), names, metric, metric_range
        )
        if not self._layers:
            return self._stays_float("no layer of it can be quantized", None, None)
        if not names and metric is None:
            return self._stays_float(
                "none of its outputs is a tensor of numbers, so nothing can be compared", None, None
            )
        writers = self._writers()
        with self._shown.each("Measuring layers", self._layers, len(self._layers)) as layers:
            self._layers = with_sensitivity(layers, self._float, writers[0], self._spool.calibration)
        candidates = [found for writer in writers if (found := self._accurate(writer)) is not None]
        if not candidates:
            accuracy = self._rejected.accuracy if self._rejected is not None else None
            return self._stays_float(f"no int8 model has {self._limits}", accuracy, None)
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
            return self._stays_float(reason, best.accuracy, ratio)
        return self._proven(best, ratio)

    def _proven(self, best: _Candidate, ratio: speed.Ratio | None) -> QuantizedModel:
        """The chosen model, its metric measured on batches that had no part in the choice: the bound is of one model then."""
        accuracy = best.accuracy
        if accuracy.metric is not None:
            accuracy = replace(accuracy, metric=self._proof.compare(best.prepared.run).metric)
            if not self._limits.drop_holds(accuracy.metric):
                reason = f"the batches kept for the proof do not show a drop of at most {self._limits.max_drop:g}"
                return self._stays_float(reason, accuracy, ratio)
        report = self._report(accuracy, ratio, writer=best.writer.name, quantized=best.quantized)
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
        """The model with the fewest float layers that holds the limits; None where none does."""
        ranked = sorted(self._layers, key=lambda layer: layer.sensitivity, reverse=True)
        failed, good = -1, None
        count = 0
        with self._shown.bar(f"Keeping sensitive layers float ({writer.name})") as step:
            while count < len(ranked):
                found = self._measured(writer, ranked[count:])
                step()
                if found is not None and self._limits.hold(found.accuracy):
                    good = found
                    break
                if found is not None:
                    self._rejected = found
                failed, count = count, min(max(count + 1, count * 3 // 2), max(len(ranked) - 1, count + 1))
            while good is not None and count - failed > 1:  # in between, fewer may do
                middle = (failed + count) // 2
                found = self._measured(writer, ranked[middle:])
                step()
                if found is not None and self._limits.hold(found.accuracy):
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
        return _Candidate(writer, made, prepared, quantized, accuracy)

    def _without_slow_groups(self, best: _Candidate, feeds: Mapping[str, Any]) -> _Candidate:
        """Leave those kinds of layers float that int8 makes slower."""
        groups = sorted({layer.group for layer in self._layers if layer.name in best.quantized})
        for group in groups if len(groups) > 1 else ():
            kept = [layer for layer in self._layers if layer.name in best.quantized and layer.group != group]
            found = self._measured(best.writer, kept) if kept else None
            if found is None or not self._limits.hold(found.accuracy):
                continue
            if speed.compare(_run(found, feeds), _run(best, feeds)).faster:
                self._too_slow.add(group)
                best = found
        return best

    def _stays_float(self, reason: str, accuracy: Accuracy | None, ratio: speed.Ratio | None) -> QuantizedModel:
        report = self._report(accuracy or Accuracy((), None), ratio, writer="", quantized=frozenset(), reason=reason)
        return QuantizedModel(self._given.proto, report)

    def _report(
        self,
        accuracy: Accuracy,
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
            else:
                why = SPEED if found.group in self._too_slow else ACCURACY
            return LayerReport(found.name, found.op_type, found.group, found.sensitivity, why)

        notes = list(self._notes)
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
            speed=ratio,
            layers=tuple(map(layer, (*self._layers, *self._excluded))),
            notes=tuple(dict.fromkeys(notes)),
        )


def _run(candidate: _Candidate, feeds: Mapping[str, Any]) -> Callable[[], object]:
    return lambda: candidate.prepared.run(feeds)
