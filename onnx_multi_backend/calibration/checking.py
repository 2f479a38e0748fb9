# SPDX-License-Identifier: Apache-2.0
"""Whether one Q/DQ model gives the same results on every engine and at every level of optimization, and where it does not."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, numpy_helper

from onnx_multi_backend.adapt.pipeline import untouched
from onnx_multi_backend.calibration.batches import Reader
from onnx_multi_backend.calibration.checked_options import check_batches
from onnx_multi_backend.calibration.source import FloatModel
from onnx_multi_backend.engines import byte_products
from onnx_multi_backend.engines.ort import quantization
from onnx_multi_backend.errors import OnnxMultiBackendError, UnsupportedModelError
from onnx_multi_backend.models.given import ModelLike
from onnx_multi_backend.models.loading import load
from onnx_multi_backend.presets.registry import availability, get_preset
from onnx_multi_backend.running.prepared import PreparedModel
from onnx_multi_backend.sessions.signature import signature

#: ONNX Runtime's levels below its own default, by the names that its session options have.
_LEVELS = {"ORT_DISABLE_ALL": "no optimization", "ORT_ENABLE_BASIC": "basic", "ORT_ENABLE_EXTENDED": "extended"}

#: ONNX Runtime then multiplies 8-bit numbers in 16 bits, without saturation.
_CURE = (
    'With adapt=True the preset writes the weights as uint8. For ONNX Runtime alone set "session.x64quantprecision", or quantize with '
    'target="portable"'
)

_SATURATION = "sums of two 8-bit products saturate on processors without VNNI"


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
class NodeDisagreement:
    """A layer whose results differ from those of its Q/DQ nodes as they stand.

    Attributes
    ----------
    node, op_type : str
    steps : float
        How many steps of its output's quantization the largest difference is.
    cause, cure : str
        Empty where it is not known.
    """

    node: str
    op_type: str
    steps: float
    cause: str = ""
    cure: str = ""


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
            if setting.has_no_cause:
                lines.append(f"  {_EDGES if setting.steps <= _AT_EDGES else self._beyond_layers()}")
        return "\n".join(lines)

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
    layers = _layers(proto)
    if not layers:
        raise UnsupportedModelError(
            f"{loaded.label} has no layer between Q/DQ nodes. quantize(model, data) makes one that has."
        )
    source = FloatModel(proto, signature(loaded, untouched(loaded.proto)))
    feeds = [batch.feeds for batch in Reader(data, source.signature, batches)]
    plain = quantization.session(proto, optimized=False)
    expected = [plain.run(None, given) for given in feeds]
    steps = [_last_step(proto, output.name) for output in proto.graph.output]
    found = []
    for name, prepare in _settings():
        try:
            prepared = prepare(proto)
        except OnnxMultiBackendError as error:
            found.append(SettingCheck(name, math.inf, _why_refused(name, error)))
            continue
        differences = [
            _difference(right, value, step)
            for given, rights in zip(feeds, expected, strict=True)
            for right, value, step in zip(rights, prepared.run(given), steps, strict=True)
        ]
        largest = max(differences, default=0.0)
        nodes = _disagreeing(proto, layers, feeds[0], name, prepare) if largest > 1 else ()
        found.append(SettingCheck(name, largest, "", nodes))
    return Int8Check(tuple(found))


_Prepare = Callable[[ModelProto], PreparedModel]


def _why_refused(setting: str, error: OnnxMultiBackendError) -> str:
    """Why a setting does not take a model that ONNX Runtime takes as it stands."""
    if not setting.startswith("OrtCpu, "):
        return str(error)
    return f"ONNX Runtime fails with this option: {'; '.join(getattr(error, 'reasons', ())) or error}"


def _settings() -> list[tuple[str, _Prepare]]:
    usable = availability()

    def preset(name: str, **options: Any) -> _Prepare:
        return lambda proto: get_preset(name).prepare(proto, cache_dir=False, **options)

    made = []
    if usable["OrtCpu"].usable:
        for level, words in _LEVELS.items():
            made.append((f"OrtCpu, {words}", preset("OrtCpu", session_options={"graph_optimization_level": level})))
        made.append(("OrtCpu", preset("OrtCpu")))
        made.append(("OrtCpu, adapt=False", preset("OrtCpu", adapt=False)))
    made += [(name, preset(name)) for name in ("Openvino", "OrtOpenvino") if usable[name].usable]
    return made


@dataclass(frozen=True)
class _Layer:
    """A node that reads dequantized values."""

    node: NodeProto
    inputs: tuple[str, ...]
    output: str


def _layers(proto: ModelProto) -> list[_Layer]:
    """Each node whose inputs come out of DequantizeLinear, from quantized values to quantized values where they are."""
    makers = {name: node for node in proto.graph.node for name in node.output}
    readers: dict[str, list[NodeProto]] = {}
    for node in proto.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    constants = {tensor.name for tensor in proto.graph.initializer}
    found = []
    for node in proto.graph.node:
        read = [makers.get(name) for name in node.input]
        given = [maker for maker in read if maker is not None and maker.op_type == "DequantizeLinear"]
        if node.op_type == "QuantizeLinear" or len(given) < 2:
            continue
        inputs = tuple(maker.input[0] for maker in given if maker.input[0] not in constants)
        if not inputs or any(m is None and n not in constants for m, n in zip(read, node.input, strict=True) if n):
            continue
        after = readers.get(node.output[0], [])
        last = after[0].output[0] if len(after) == 1 and after[0].op_type == "QuantizeLinear" else node.output[0]
        found.append(_Layer(node, inputs, last))
    return found


def _disagreeing(
    proto: ModelProto, layers: Sequence[_Layer], feeds: Mapping[str, Any], setting: str, prepare: _Prepare
) -> tuple[NodeDisagreement, ...]:
    """Run each layer by itself, on what the Q/DQ nodes as they stand give it."""
    wanted = list(dict.fromkeys(itertools.chain.from_iterable((*layer.inputs, layer.output) for layer in layers)))
    made = ModelProto()
    made.CopyFrom(proto)
    known = {value.name for value in (*made.graph.output, *made.graph.input)}
    made.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in known)
    outputs = [name for name in wanted if name not in {v.name for v in proto.graph.input}]
    values = dict(zip(outputs, quantization.session(made, optimized=False).run(outputs, dict(feeds)), strict=True))
    values.update(feeds)
    inferred = onnx.shape_inference.infer_shapes(proto)
    found = []
    for layer in layers:
        single = onnx.utils.Extractor(inferred).extract_model(list(dict.fromkeys(layer.inputs)), [layer.output])
        given = {name: values[name] for name in dict.fromkeys(layer.inputs)}
        try:
            result = prepare(single).run(given)[0]
        except OnnxMultiBackendError:
            continue  # by itself it is refused; in the model it was not
        step = 1.0 if values[layer.output].dtype.kind in "iu" else _last_step(proto, layer.node.output[0])
        steps = _difference(values[layer.output], result, step)
        if steps > 1:
            cause, cure = _cause(single, given, values[layer.output], step, setting)
            found.append(
                NodeDisagreement(layer.node.name or layer.node.output[0], layer.node.op_type, steps, cause, cure)
            )
    return tuple(found)


def _cause(
    single: ModelProto, given: Mapping[str, Any], right: np.ndarray[Any, Any], step: float, setting: str
) -> tuple[str, str]:
    if not byte_products.may_saturate(single.graph.initializer):
        return "", ""
    if not setting.startswith("OrtCpu"):
        return f"probably {_SATURATION}", 'Quantize with target="portable"'
    exact = get_preset("OrtCpu").prepare(single, cache_dir=False)
    if _difference(right, exact.run(given)[0], step) > 1:
        return "", ""
    return _SATURATION, _CURE


def _last_step(proto: ModelProto, output: str) -> float:
    """The scale of the last quantization before an output; for none, the smallest difference between float32 numbers of size 1."""
    makers = {name: node for node in proto.graph.node for name in node.output}
    constants = {tensor.name: tensor for tensor in proto.graph.initializer}
    todo, seen = [output], set()
    while todo:
        node = makers.get(todo.pop(0))
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if node.op_type == "DequantizeLinear" and node.input[1] in constants:
            return float(numpy_helper.to_array(constants[node.input[1]]).max())
        todo += [name for name in node.input if name]
    return float(np.finfo(np.float32).eps)


def _difference(right: Any, found: Any, step: float) -> float:
    a, b = np.asarray(right), np.asarray(found)
    if a.shape != b.shape:
        return math.inf
    if a.dtype.kind not in "fiub" or not a.size:
        return 0.0
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(a) & np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return math.inf
    apart = np.abs(a[finite] - b[finite]).max(initial=0.0) / step
    return float(apart) - 1e-3 if apart > 1e-3 else 0.0  # what float32 itself rounds
