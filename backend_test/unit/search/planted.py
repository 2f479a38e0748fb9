# SPDX-License-Identifier: Apache-2.0
"""Presets with a planted fault, for the tests of the searches: `bare` names the engine that they are held to."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

import onnx_multi_backend as omb


class _Prepared:
    def __init__(self, prepared: Any, change: Any) -> None:
        self._prepared, self._change = prepared, change

    def run(self, inputs: Any) -> Any:
        return self._change(list(self._prepared.run(inputs)))


class _Planted:
    bare = "OrtCpu"

    @classmethod
    def prepare(cls, model: Any) -> Any:
        prepared = omb.OrtCpuBackend.prepare(model)
        return _Prepared(prepared, cls._change) if cls._meant(prepared) else prepared

    @classmethod
    def compatibility(cls, model: Any) -> Any:
        return omb.OrtCpuBackend.compatibility(model)

    @classmethod
    def _meant(cls, prepared: Any) -> bool:
        return any(node.op_type == "Relu" for node in prepared.placement())

    @classmethod
    def _change(cls, outputs: list[Any]) -> list[Any]:
        raise NotImplementedError


class Wrong(_Planted):
    """Whatever has a Relu comes out with one more."""

    @classmethod
    def _change(cls, outputs: list[Any]) -> list[Any]:
        return [x + x.dtype.type(1) if isinstance(x, np.ndarray) and x.dtype.kind in "fi" else x for x in outputs]


class WrongInBranches(Wrong):
    """Whatever has an If comes out with one more."""

    @classmethod
    def _meant(cls, prepared: Any) -> bool:
        return any(node.op_type == "If" for node in prepared.placement())


class Dies(_Planted):
    """A Relu ends the process."""

    @classmethod
    def _change(cls, outputs: list[Any]) -> list[Any]:
        os.abort()


class Raises(_Planted):
    """A Relu raises what is not an error of the package."""

    @classmethod
    def _change(cls, outputs: list[Any]) -> list[Any]:
        raise ZeroDivisionError("planted")


class Hangs(_Planted):
    """A Relu never ends."""

    @classmethod
    def _change(cls, outputs: list[Any]) -> list[Any]:
        while True:
            time.perf_counter()


class Hungry(_Planted):
    """A Relu takes 1.5 GiB."""

    @classmethod
    def _change(cls, outputs: list[Any]) -> list[Any]:
        kept = [np.ones(1 << 22) for _ in range(48)]
        return outputs if kept else []


class Refuses(_Planted):
    """A Relu is refused when it is prepared."""

    @classmethod
    def prepare(cls, model: Any) -> Any:
        if cls._meant(omb.OrtCpuBackend.prepare(model)):
            raise omb.UnsupportedModelError("Relu is refused for the test")
        return omb.OrtCpuBackend.prepare(model)
