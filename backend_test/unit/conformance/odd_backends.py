# SPDX-License-Identifier: Apache-2.0
"""Backends that behave in ways nobody plans for, each with the right results but for what its name says."""

from __future__ import annotations

import io
import logging
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from onnx.backend.base import BackendRep

from backend_test.unit.conformance.toys import PlainBackend, PlainRep


class OddBackend(PlainBackend):
    """Does `odd` before each result."""

    @staticmethod
    def odd() -> None:
        """Nothing yet."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        return OddRep(model, cls)


class OddRep(PlainRep):
    def __init__(self, model: ModelProto, backend: type[OddBackend]) -> None:
        super().__init__(model)
        self.backend = backend

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        self.backend.odd()
        return super().run(inputs)


class Réseau(OddBackend):
    """Has a name that not every terminal can write."""


instance = OddBackend()


class LacksEveryDevice(OddBackend):
    @classmethod
    def supports_device(cls, device: str) -> bool:
        return False


class AbortsBesideAChild(OddBackend):
    """Dies while a process that it started lives on, with all that it inherited."""

    @staticmethod
    def odd() -> None:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        os.abort()


class UsesProcesses(OddBackend):
    @staticmethod
    def odd() -> None:
        with ProcessPoolExecutor(1) as pool:
            assert pool.submit(abs, -1).result() == 1


class ClosesStdout(OddBackend):
    @staticmethod
    def odd() -> None:
        sys.stdout.close()


class DropsStdout(OddBackend):
    @staticmethod
    def odd() -> None:
        sys.stdout = None  # type: ignore[assignment]


class ReplacesStderr(OddBackend):
    @staticmethod
    def odd() -> None:
        sys.stderr = io.StringIO()


class ClosesDescriptorTwo(OddBackend):
    @staticmethod
    def odd() -> None:
        os.close(2)


class ClosesDescriptorTwoAndDies(OddBackend):
    @staticmethod
    def odd() -> None:
        os.close(2)
        os.abort()


class Exits(OddBackend):
    @staticmethod
    def odd() -> None:
        sys.exit(3)


class RaisesNoException(OddBackend):
    @staticmethod
    def odd() -> None:
        raise GeneratorExit("not an Exception")


class MuteError(Exception):
    def __str__(self) -> str:
        raise TypeError("no words")


class RaisesWithoutWords(OddBackend):
    @staticmethod
    def odd() -> None:
        raise MuteError


class IsLongWinded(OddBackend):
    @staticmethod
    def odd() -> None:
        raise ValueError("\nit began here\n" + "and so on, " * 5_000_000 + "and ended here")


class SpeaksNoUnicode(OddBackend):
    """Says, logs and prints what no encoding has a form for."""

    @staticmethod
    def odd() -> None:
        logging.getLogger("odd").warning("a file called \udc80")
        print("printed \udc80".encode(errors="surrogateescape"))
        raise ValueError("cannot read \udc80")


class Hoards(OddBackend):
    """Takes eight gigabytes for Abs."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        if model.graph.node[0].op_type == "Abs":
            np.ones(10**9)
        return super().prepare(model, device, **kwargs)


class SaysItsVersion(OddBackend):
    name = "Odd Engine"
    version = "1.2 beta"


class SaysItsName(OddBackend):
    name = "Odd Engine"


class SkipsAsPytestDoes(OddBackend):
    @staticmethod
    def odd() -> None:
        pytest.skip("not today")


class PrintsAndDies(OddBackend):
    @staticmethod
    def odd() -> None:
        print("loading the weights")
        os.abort()


class ClosesStdoutThenDies(OddBackend):
    """Closes its streams in Abs, prints and dies in anything else."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> BackendRep:
        if model.graph.node[0].op_type == "Abs":
            return OddRep(model, ClosesStdout)
        return OddRep(model, PrintsAndDies)


#: A module that can be imported a few times only, as with licences or a device's memory; its backend dies of Ceil.
LOADS_A_FEW_TIMES = """
import os
from pathlib import Path
from backend_test.unit.conformance.toys import PlainBackend

for number in range({times}):
    try:
        Path(__file__).with_name("load%d" % number).open("x").close()
        break
    except FileExistsError:
        continue
else:
    raise RuntimeError("the licence is in use")

class Licensed(PlainBackend):
    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        if model.graph.node[0].op_type == "Ceil":
            os.abort()
        return super().prepare(model, device)
"""
