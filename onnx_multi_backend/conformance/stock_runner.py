# SPDX-License-Identifier: Apache-2.0
"""ONNX's own runner with a backend plugged in, its two leniencies taken out."""

from __future__ import annotations

import copy
import functools
import unittest
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from onnx import ModelProto, NodeProto
from onnx.backend.base import Backend
from onnx.backend.test import BackendTest
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.runner import BackendIsNotSupposedToImplementIt

from onnx_multi_backend.conformance.cases import case_name, find_case
from onnx_multi_backend.conformance.compare import assert_similar


class Recorder:
    """Stands in for the backend, and remembers what `prepare` returned."""

    def __init__(self, backend: Any, options: Mapping[str, Any]) -> None:
        self._backend = backend
        self._options = options
        self.rep: Any = None
        self.supports_device = functools.cache(backend.supports_device)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def prepare(self, model: ModelProto, device: str, **kwargs: Any) -> Any:
        own = ModelProto()
        own.CopyFrom(model)  # node models are shared by every backend in the process
        self.rep = self._backend.prepare(own, device, **self._options, **kwargs)
        return self.rep if self.rep is None else _Prepared(self.rep)

    def is_compatible(self, model: ModelProto) -> bool:
        """Answer the stock runner, which asks before some cases and skips without a reason.

        A backend that can explain itself (`compatibility`) explains itself in `prepare` too, so that is asked instead.
        """
        if hasattr(self._backend, "compatibility") or not hasattr(self._backend, "is_compatible"):
            return True
        return bool(self._backend.is_compatible(model))


class _Prepared:
    """Stands in for what `prepare` returned, and gives it inputs of its own: some expected outputs are the inputs."""

    def __init__(self, rep: Any) -> None:
        self._rep = rep

    def run(self, inputs: Any, **kwargs: Any) -> Any:
        self._inputs = copy.deepcopy(inputs)  # kept as the runner keeps its own: a result may share their memory
        return self._rep.run(self._inputs, **kwargs)


class StockRunner(BackendTest):
    """The stock runner, for chosen devices, with its two leniencies taken out."""

    def __init__(self, backend: Recorder, devices: Sequence[str]) -> None:
        self._devices = tuple(devices)
        self.sources: dict[str, TestCase] = {}
        super().__init__(cast("type[Backend]", backend))

    @functools.cached_property
    def functions(self) -> dict[str, Callable[..., None]]:
        """What runs a case, by its name."""
        return {name: item.func for items in self._test_items.values() for name, item in items.items()}

    def _add_test(
        self,
        category: str,
        test_name: str,
        test_func: Callable[..., Any],
        report_item: list[ModelProto | NodeProto | None],
        devices: Iterable[str] = (),
        **kwargs: Any,
    ) -> None:
        @functools.wraps(test_func)
        def honest(*args: Any, **options: Any) -> Any:
            try:
                return test_func(*args, **options)
            except BackendIsNotSupposedToImplementIt as e:  # the stock runner counts this one as a pass
                raise unittest.SkipTest(str(e)) from e

        super()._add_test(category, test_name, honest, report_item, self._devices, **kwargs)
        for device in self._devices:
            name = case_name(test_name, device)
            case = find_case(name)
            assert case is not None
            self.sources[name] = case

    @classmethod
    def assert_similar_outputs(
        cls, ref_outputs: Sequence[Any], outputs: Sequence[Any], rtol: float, atol: float, model_dir: str | None = None
    ) -> None:
        stock = super().assert_similar_outputs

        def compare_arrays(expected: Any, actual: Any) -> None:
            stock([expected], [actual], rtol, atol, model_dir)

        if isinstance(outputs, Mapping) or not hasattr(outputs, "__len__"):
            raise TypeError(f"run returned {type(outputs).__name__}, expected a sequence of outputs")
        if len(ref_outputs) != len(outputs):
            raise AssertionError(f"run returned {len(outputs)} outputs, expected {len(ref_outputs)}")
        for i, (expected, actual) in enumerate(zip(ref_outputs, outputs, strict=True)):
            assert_similar(expected, actual, compare_arrays, f"output {i}")
