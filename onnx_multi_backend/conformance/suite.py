# SPDX-License-Identifier: Apache-2.0
"""The official suite on one backend, each case labelled by what really happened."""

from __future__ import annotations

import contextlib
import logging
import sys
import tempfile
import time
import unittest
import warnings
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from onnx import ModelProto
from onnx.backend.test.case.test_case import TestCase

from onnx_multi_backend.conformance.cases import Case, environment, is_light, load_model, official_cases
from onnx_multi_backend.conformance.foreign import describe_error, message_of, sound
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.results import CaseResult, Change, PlacedNode
from onnx_multi_backend.conformance.stock_runner import Recorder, StockRunner
from onnx_multi_backend.errors import UnsupportedModelError

logger = logging.getLogger(__name__)


class Suite:
    """The official suite for one backend.

    Cases are generated, loaded and compared by ONNX's own runner. One case runs at a time: not safe from several
    threads, but any number of processes may run the suite at once.

    Parameters
    ----------
    backend : type[Backend] or module
        Anything with ONNX's backend interface. A prepared model that also has ``provider``, ``placement()`` and
        ``adaptations`` gets the labels ``native``, ``adapted`` and ``fallback``, any other ``pass``.
    devices : sequence of str, default ("CPU",)
        The devices to generate cases for, as ONNX's interface names them.
    name : str, optional
        The name in the results; by default that of the class without ``Backend``.
    options : mapping, optional
        Passed to every ``prepare``.
    """

    def __init__(
        self,
        backend: Any,
        devices: Sequence[str] = ("CPU",),
        name: str | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        official_cases()  # generated here, where the warnings about ONNX's own arithmetic are kept quiet
        self.name = name or str(getattr(backend, "__name__", type(backend).__name__)).removesuffix("Backend")
        self._recorder = Recorder(backend, options or {})
        self._runner = StockRunner(self._recorder, devices)

    @property
    def cases(self) -> list[Case]:
        """Every case, named as ONNX names it, in ONNX's order."""
        return [Case(name, case.kind) for name, case in self._runner.sources.items()]

    def model(self, name: str) -> ModelProto:
        """Return the model of a case; see `onnx_multi_backend.conformance.cases.load_model`."""
        return load_model(name)

    def run(self, name: str) -> CaseResult:
        """Run one case and label it; nothing but a KeyboardInterrupt gets out of it.

        The traceback behind a ``fail`` is logged at DEBUG level.

        Raises
        ------
        KeyError
            The suite has no case of this name.
        """
        source = self._runner.sources[name]
        self._recorder.rep = None
        start = time.perf_counter_ns()
        try:
            with _quiet(), _private_data(source):
                self._runner.functions[name](None)
            duration = time.perf_counter_ns() - start
            adaptations, placement = _told(self._recorder.rep)
            label, reason, error = *_how_it_passed(self._recorder.rep, adaptations, placement), ""
        except KeyboardInterrupt:
            raise
        except BaseException as e:  # a foreign backend may raise anything: sys.exit() is not a reason to end the run
            duration = time.perf_counter_ns() - start
            label, reason, error = _why_not(e)
            logger.debug("%s on %s", name, self.name, exc_info=True)
            adaptations, placement = (), ()
            with contextlib.suppress(Exception):  # the case has failed already, whatever else does
                adaptations, placement = _told(self._recorder.rep)
        self._recorder.rep = None
        return CaseResult(
            self.name, name, source.kind, label, reason, adaptations, placement, round(duration / 1e6, 3), error
        )


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fallback is a label here, not a warning
        yield


@contextlib.contextmanager
def _private_data(source: TestCase) -> Generator[None]:
    """Give a light model a data folder of its own: ONNX writes its inputs each time, and two processes would race."""
    if is_light(source):
        with tempfile.TemporaryDirectory(prefix="onnx-light-") as folder, environment("ONNX_MODELS", folder):
            yield
    else:
        yield


def _how_it_passed(rep: Any, adaptations: Sequence[Change], placement: Sequence[PlacedNode]) -> tuple[Label, str]:
    if not _tells(rep):
        return Label.PASS, ""
    elsewhere = [n for n in placement if n.provider != rep.provider]
    if elsewhere:
        return Label.FALLBACK, ", ".join(f"{n} on {n.provider}" for n in elsewhere)
    if adaptations:
        return Label.ADAPTED, ", ".join(dict.fromkeys(c.pass_name for c in adaptations))
    return Label.NATIVE, "" if placement else "all nodes folded at load"


def _why_not(error: BaseException) -> tuple[Label, str, str]:
    if isinstance(error, unittest.SkipTest) or _is_pytest_skip(error):
        return Label.SKIP, message_of(error) or "skipped by the backend without a reason", ""
    if isinstance(error, UnsupportedModelError):
        return Label.UNSUPPORTED, message_of(error), ""
    return Label.FAIL, "", describe_error(error)


def _is_pytest_skip(error: BaseException) -> bool:
    pytest = sys.modules.get("pytest")  # whoever raised it has imported it
    return pytest is not None and isinstance(error, pytest.skip.Exception)


def _tells(rep: Any) -> bool:
    """Whether a prepared model reports where its nodes ran; a foreign one may use one of these words for something else."""
    return getattr(rep, "provider", None) is not None and callable(getattr(rep, "placement", None))


def _told(rep: Any) -> tuple[tuple[Change, ...], tuple[PlacedNode, ...]]:
    """What a prepared model reports of itself: its adaptations and its placement."""
    if not _tells(rep):
        return (), ()
    changes = getattr(rep, "adaptations", ())
    return (
        tuple(Change(*map(sound, (c.pass_name, str(c.node or ""), str(c.change), str(c.reason)))) for c in changes),
        tuple(PlacedNode(*map(sound, (n.name, n.op_type, n.domain, n.provider))) for n in rep.placement()),
    )
