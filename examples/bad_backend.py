# SPDX-License-Identifier: Apache-2.0
"""A backend that misbehaves on purpose: a test subject for whatever runs backends. Never use it for anything else.

What it does is decided by the operator of the model's first node:

=======  ========================================================================================
Abs      run dies of a segmentation fault
Neg      run hangs for ever, and no exception ends it
Ceil     run aborts the process
Floor    run returns wrong values, one too many
Sin      run raises a bare RuntimeError
Sign     prepare opts out, with the exception that ONNX's own runner counts as a pass
Cos      prepare refuses honestly
others   right, as `examples.toy_backend.ToyBackend` is
=======  ========================================================================================
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

from onnx import ModelProto
from onnx.backend.base import BackendRep
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from examples.toy_backend import ToyBackend
from onnx_multi_backend.errors import UnsupportedModelError


class BadRep(BackendRep):
    """A prepared model that misbehaves when it runs."""

    def __init__(self, rep: BackendRep, operator: str) -> None:
        self._rep = rep
        self._operator = operator

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run, or do what this operator is here for."""
        match self._operator:
            case "Abs":
                ctypes.string_at(0)  # reads address 0
            case "Neg":
                _hang()
            case "Ceil":
                os.abort()
            case "Sin":
                raise RuntimeError("the bad backend fails on Sin")
        outputs = self._rep.run(inputs, **kwargs)
        return tuple(o + 1 for o in outputs) if self._operator == "Floor" else outputs


class BadBackend(ToyBackend):
    """The toy, with the misbehaviour that the module describes."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        """Prepare a model, opt out, or refuse."""
        rep = super().prepare(model, device, **kwargs)
        operator = model.graph.node[0].op_type if model.graph.node else ""
        if operator == "Sign":
            raise BackendIsNotSupposedToImplementIt("the bad backend opts out of Sign")
        if operator == "Cos":
            raise UnsupportedModelError("The bad backend has no Cos.", operators=["Cos"])
        return BadRep(rep, operator)


def _hang() -> None:
    while True:
        try:
            time.sleep(60)
        except BaseException:  # a timeout that only raises must not free it
            continue
