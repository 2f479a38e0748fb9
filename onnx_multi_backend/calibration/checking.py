# SPDX-License-Identifier: Apache-2.0
"""Whether one Q/DQ model gives the same results on every engine and at every level of optimization, and where it does not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from onnx_multi_backend.adapt.pipeline import untouched
from onnx_multi_backend.calibration.batches import Reader
from onnx_multi_backend.calibration.checked_options import check_batches
from onnx_multi_backend.calibration.disagreements import (
    NodeDisagreement,
    Prepare,
    difference,
    disagreeing,
    last_step,
    quantized_layers,
)
from onnx_multi_backend.calibration.source import FloatModel
from onnx_multi_backend.engines.ort import quantization
from onnx_multi_backend.errors import OnnxMultiBackendError, UnsupportedModelError
from onnx_multi_backend.models.given import ModelLike
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets.registry import availability, get_preset
from onnx_multi_backend.sessions.signature import signature

#: ONNX Runtime's levels below its own default, by the names that its session options have.
_LEVELS = {"ORT_DISABLE_ALL": "no optimization", "ORT_ENABLE_BASIC": "basic", "ORT_ENABLE_EXTENDED": "extended"}


#: So many steps come of values at the edges of steps, in models of usual depth.
_AT_EDGES = 2.0
_EDGES = (
    "No layer differs when it is run by itself: what stays float between layers is rounded differently, and a value at the edge of a step falls "
    "on either side. Nothing is to be done where the accuracy holds on your data."
)
_BEYOND_LAYERS = (
    "No layer differs when it is run by itself, on the first batch: the cause is in layers that the engine computes together, or in nodes that "
    "stay float. Compare the accuracy on your data with this setting and without it; leave layers float with quantize(..., exclude=[...]) until "
    "it holds"
)


@dataclass(frozen=True)
class SettingCheck:
    """One engine with one set of options.

    Attributes
    ----------
    setting : str
        For example ``OrtCpu, basic``.
    steps : float
        The largest difference of an output, in steps of the last quantization before it.
    refused : str
        Why the engine does not take the model; empty where it does.
    nodes : tuple of NodeDisagreement
        The layers that differ by more than a step.
    """

    setting: str
    steps: float
    refused: str = ""
    nodes: tuple[NodeDisagreement, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether no output is more than a step away."""
        return not self.refused and self.steps <= 1

    @property
    def has_no_cause(self) -> bool:
        """Whether outputs differ, and no layer does that is run by itself."""
        return not self.agrees and not self.refused and not self.nodes


@dataclass(frozen=True)
class Int8Check:
    """What `check_int8` found; true where all settings agree."""

    settings: tuple[SettingCheck, ...]

    def __bool__(self) -> bool:
        return all(setting.agrees for setting in self.settings)

    def __str__(self) -> str:
        lines = []
        for setting in self.settings:
            words = setting.refused or (
                "agrees" if setting.agrees else f"differs by {setting.steps:.3g} steps of the last quantization"
            )
            lines.append(f"{setting.setting}: {words}")
            for node in setting.nodes:
                why = f": {node.cause}. {node.cure}" if node.cause else ", for a reason that is not known"
                lines.append(f"  {node.op_type} {node.node!r} differs by {node.steps:.3g} steps{why}")
        advice: dict[str, list[str]] = {}
        for setting in self.settings:
            if setting.has_no_cause:
                said = _EDGES if setting.steps <= _AT_EDGES else self._beyond_layers()
                advice.setdefault(said, []).append(setting.setting)
        return "\n".join([*lines, *(f"{'; '.join(names)}: {said}" for said, names in advice.items())])

    def _beyond_layers(self) -> str:
        """What to do where engines differ by much, and in no layer."""
        others = [setting.setting for setting in self.settings if setting.agrees]
        instead = f", or choose what agrees: {'; '.join(others)}" if others else ""
        return f"{_BEYOND_LAYERS}{instead}."


def check_int8(model: ModelLike, data: Any, *, batches: int | None = 4) -> Int8Check:
    """Run a Q/DQ model on every usable engine and level of optimization, beside its Q/DQ nodes as they stand.

    Parameters
    ----------
    model : path, bytes or onnx.ModelProto
        With Q/DQ nodes.
    data : iterable
        Of inputs, as `quantize` takes them.
    batches : int, optional
        Read no more than these.

    Returns
    -------
    Int8Check

    Raises
    ------
    UnsupportedModelError
        The model has no Q/DQ nodes, or ONNX Runtime does not take it.
    CalibrationDataError
    """
    check_batches(batches)
    loaded = load(model)
    proto = loaded.with_all_weights()
    layers = quantized_layers(proto)
    if not layers:
        raise UnsupportedModelError(
            f"{loaded.label} has no layer between Q/DQ nodes. quantize(model, data) makes one that has."
        )
    source = FloatModel(proto, signature(loaded, untouched(loaded.proto)))
    feeds = [batch.feeds for batch in Reader(data, source.signature, batches)]
    plain = quantization.session(proto, optimized=False)
    expected = [plain.run(None, given) for given in feeds]
    steps = [last_step(proto, output.name) for output in proto.graph.output]
    found = []
    for name, prepare in _settings():
        try:
            prepared = prepare(proto)
        except OnnxMultiBackendError as error:
            found.append(SettingCheck(name, math.inf, _why_refused(name, error)))
            continue
        differences = [
            difference(right, value, step)
            for given, rights in zip(feeds, expected, strict=True)
            for right, value, step in zip(rights, prepared.run(given), steps, strict=True)
        ]
        largest = max(differences, default=0.0)
        nodes = disagreeing(proto, layers, feeds[0], name, prepare) if largest > 1 else ()
        found.append(SettingCheck(name, largest, "", nodes))
    return Int8Check(tuple(found))


def _why_refused(setting: str, error: OnnxMultiBackendError) -> str:
    """Why a setting does not take a model that ONNX Runtime takes as it stands."""
    if not setting.startswith("OrtCpu, "):
        return str(error)
    return f"ONNX Runtime fails with this option: {'; '.join(getattr(error, 'reasons', ())) or error}"


def _settings() -> list[tuple[str, Prepare]]:
    usable = availability()

    def preset(name: str, **options: Any) -> Prepare:
        return lambda proto: get_preset(name).prepare(proto, cache_dir=False, **options)

    made = []
    if usable["OrtCpu"].usable:
        for level, words in _LEVELS.items():
            made.append((f"OrtCpu, {words}", preset("OrtCpu", session_options={"graph_optimization_level": level})))
        made.append(("OrtCpu", preset("OrtCpu")))
        made.append(("OrtCpu, adapt=False", preset("OrtCpu", adapt=False)))
    made += [(name, preset(name)) for name in ("Openvino", "OrtOpenvino") if usable[name].usable]
    return made
