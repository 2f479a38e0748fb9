# SPDX-License-Identifier: Apache-2.0
"""A third engine, added from outside: tract (https://github.com/sonos/tract, ``pip install tract``), which runs on the CPU.

The package that holds this file names it in its ``pyproject.toml``, and ``Tract`` is a preset like any other:

    [project.entry-points."onnx_multi_backend.presets"]
    Tract = "tract_engine:TractBackend"
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt import Limits
from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Built, Feeds, Payload, RefusedError, Session, Value
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import OptionError, RunError, UnsupportedModelError
from onnx_multi_backend.host import devices
from onnx_multi_backend.host.devices import Device, Problem
from onnx_multi_backend.models.graph_walk import all_nodes
from onnx_multi_backend.models.loading import LoadedModel
from onnx_multi_backend.models.tensors import WIDER, numpy_dtype
from onnx_multi_backend.presets.base import Preset

#: The element types that tract's arrays come in.
_TYPES = {
    getattr(TensorProto, name): np.dtype(dtype)
    for name, dtype in (
        ("BOOL", "?"), ("FLOAT16", "f2"), ("FLOAT", "f4"), ("DOUBLE", "f8"),
        ("INT8", "i1"), ("INT16", "i2"), ("INT32", "i4"), ("INT64", "i8"),
        ("UINT8", "u1"), ("UINT16", "u2"), ("UINT32", "u4"), ("UINT64", "u8"),
    )
}  # fmt: skip


class TractLimits(Limits):
    """What tract takes: any version; float8 and the types of 4 and 2 bits in wider ones, which the passes see to."""

    def boundary_type(self, elem_type: int) -> int:
        return elem_type if elem_type == TensorProto.BFLOAT16 else WIDER.get(elem_type, elem_type)

    def needs_carrier(self, elem_type: int, *, cast_to: bool, saturate: bool) -> bool:
        return elem_type in WIDER


class TractSession(Session):
    """A model that tract has compiled."""

    def __init__(self, native: Any, model: ModelProto, inputs: Sequence[str]) -> None:
        self._native = native
        self._inputs = inputs
        self._outputs = [(o.name, numpy_dtype(o.type.tensor_type.elem_type)) for o in model.graph.output]
        self._placement = tuple(NodePlacement(n.name, n.op_type, n.domain, "Tract") for n in all_nodes(model))

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Run once."""
        import tract

        if run_options:
            raise OptionError(f"tract has no run options; {', '.join(run_options)} given.")
        if fixed := feeds.keys() - set(self._inputs):  # they may name inputs with a default
            raise UnsupportedModelError(
                f"tract fixes inputs with a default: {', '.join(fixed)}. Remove their initializers."
            )
        try:
            results = [r.to_numpy() for r in self._native.run([np.asarray(feeds[n], order="C") for n in self._inputs])]
        except tract.TractError as error:
            raise RunError(f"tract failed while it ran the model: {_words(error)}") from error
        for (name, dtype), result in zip(self._outputs, results, strict=True):
            if result.dtype != dtype:
                raise RunError(f"tract computed output {name!r} in {result.dtype}; the model declares {dtype}.")
        return results

    def placement(self) -> tuple[NodePlacement, ...]:
        """A model runs on tract whole or not at all."""
        return self._placement


@dataclass(frozen=True)
class TractTarget(Target):
    """Compiles models with tract."""

    @property
    def limits(self) -> TractLimits:
        return TractLimits()

    def build(self, payload: Payload) -> Built:
        """Hand the model over as a file, which is the only form that tract takes."""
        import tract

        model = payload.whole()
        defaults = {t.name for t in model.graph.initializer}
        inputs = [i.name for i in model.graph.input if i.name not in defaults]
        for value in [*model.graph.input, *model.graph.output]:
            if value.type.tensor_type.elem_type not in _TYPES:
                raise RefusedError(f"tract has no arrays of the type of {value.name!r}", lacks_kernel=True)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            try:
                native = tract.onnx().load(str(path)).into_model().into_runnable()
            except tract.TractError as error:
                raise RefusedError(_words(error), lacks_kernel="Unimplemented" in str(error)) from error
        return Built(TractSession(native, model, inputs))


def _words(error: Exception) -> str:
    """What tract says, without its stack."""
    return " ".join(str(error).partition("Stack backtrace:")[0].split())


class TractBackend(Preset):
    """tract on the CPU."""

    name = "Tract"
    family = devices.CPU

    @classmethod
    def make_target(cls, settings: Mapping[str, Any], device: Device, loaded: LoadedModel | None) -> TractTarget:
        """There is nothing to set up."""
        return TractTarget(cls.name)

    @classmethod
    def why_unusable(cls, device: Device, settings: Mapping[str, Any]) -> Problem | None:
        """It runs wherever it is installed."""
        if importlib.util.find_spec("tract") is None:
            return Problem("tract is not installed", "Install it: pip install tract")
        return None

    @classmethod
    def engine_version(cls) -> str:
        """The package's."""
        try:
            return f"tract {metadata.version('tract')}"
        except metadata.PackageNotFoundError:
            return ""
