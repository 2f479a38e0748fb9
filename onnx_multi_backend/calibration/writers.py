# SPDX-License-Identifier: Apache-2.0
"""What turns a float model into one with Q/DQ nodes: ONNX Runtime's quantizer, and NNCF's."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from onnx import ModelProto

from onnx_multi_backend.calibration.batches import read
from onnx_multi_backend.calibration.ranges import Ranges
from onnx_multi_backend.calibration.source import FloatModel
from onnx_multi_backend.engines.ort.qdq import PYTHON_ERRORS, Layout, write_qdq
from onnx_multi_backend.errors import UnsupportedModelError


class Writer(Protocol):
    """Quantizes some layers of a model."""

    @property
    def name(self) -> str:
        """What the report calls it."""

    def __call__(self, nodes: Sequence[str]) -> ModelProto:
        """Quantize the nodes of these names, and no other layer."""


@dataclass(frozen=True)
class OrtWriter:
    """ONNX Runtime's quantizer, with ranges that were collected before."""

    model: FloatModel
    ranges: Ranges
    layout: Layout
    name: str = "onnxruntime.quantization"

    def __call__(self, nodes: Sequence[str]) -> ModelProto:
        return write_qdq(self.model.proto, self.ranges, self.layout, nodes)


@dataclass(frozen=True)
class NncfWriter:
    """NNCF's post-training quantization, which corrects biases and quantizes what lies between the layers too.

    Attributes
    ----------
    model : FloatModel
    paths : sequence of Path
        The batches to calibrate on.
    layers : sequence of str
        All layers that can be quantized: those that are not asked for stay float.
    excluded : collection of str
        Nodes of any operator that stay float.
    narrow : bool
        7 bits for weights.
    """

    model: FloatModel
    paths: Sequence[Path]
    layers: Sequence[str]
    excluded: Collection[str]
    narrow: bool
    name: str = "nncf"

    def __call__(self, nodes: Sequence[str]) -> ModelProto:
        import nncf
        from nncf.quantization.advanced_parameters import AdvancedQuantizationParameters, OverflowFix

        wanted = set(nodes)
        excluded = sorted({name for name in self.layers if name not in wanted} | set(self.excluded))
        fix = OverflowFix.ENABLE if self.narrow else OverflowFix.DISABLE
        failures = (nncf.ValidationError, nncf.InternalError, nncf.UnsupportedModelError, *PYTHON_ERRORS)
        try:
            with _silent():
                made: ModelProto = nncf.quantize(
                    self.model.proto,
                    nncf.Dataset(list(self.paths), _feeds),
                    subset_size=len(self.paths),
                    preset=nncf.QuantizationPreset.MIXED,
                    ignored_scope=nncf.IgnoredScope(names=excluded) if excluded else None,
                    advanced_parameters=AdvancedQuantizationParameters(overflow_fix=fix),
                )
        except failures as error:
            raise UnsupportedModelError(f"NNCF cannot quantize {self.model.label}: {error}") from error
        return made


def nncf_is_installed() -> bool:
    """Whether the extra `int8` is there."""
    return importlib.util.find_spec("nncf") is not None


def _feeds(path: Path) -> dict[str, Any]:
    return next(read([path])).feeds


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep NNCF's bars and log from the terminal."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)
