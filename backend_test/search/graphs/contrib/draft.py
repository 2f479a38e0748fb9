# SPDX-License-Identifier: Apache-2.0
"""A model of one operator of ONNX Runtime's domain, and the inputs of two runs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, ValueInfoProto, helper

from backend_test.search.graphs.generate import Made
from backend_test.search.graphs.values import to_tensor

DOMAIN = "com.microsoft"
_BEHIND = ("", "", "", "Relu", "Transpose", "Identity")
Sizes = Sequence[int | str]


class Draft:
    """What is drawn of a model.

    Sizes of inputs are numbers, or names whose number is another in each run: "batch", "length", "keys", "past" and "whole", which is both of
    the latter.

    Attributes
    ----------
    rng : random.Random
        Draws what the model is like.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._open = rng.random() < 0.6
        lengths = [self._lengths(rng) for _ in range(2)]
        self._runs = lengths if self._open else [lengths[0]] * 2
        self._names: list[str] = []
        self._inputs: list[ValueInfoProto] = []
        self._feeds: tuple[dict[str, np.ndarray], dict[str, np.ndarray]] = ({}, {})
        self._constants: dict[str, np.ndarray] = {}
        self._nodes: list[NodeProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._numbers = np.random.default_rng(rng.randrange(1 << 32))
        self.dtype = np.dtype(rng.choice(("float32", "float32", "float32", "float16")))

    @staticmethod
    def _lengths(rng: random.Random) -> dict[str, int]:
        found = {"batch": rng.choice((1, 2)), "length": rng.choice((1, 3, 4)), "keys": rng.choice((3, 5))}
        past = rng.choice((1, 2, 3))
        return {**found, "past": past, "whole": past + found["length"]}

    def chance(self, share: float) -> bool:
        """Whether something happens that does in this share of the cases."""
        return self.rng.random() < share

    def floats(self, *sizes: int) -> np.ndarray:
        """Normal numbers of the type that the model computes in."""
        return np.asarray(self._numbers.standard_normal(sizes)).astype(self.dtype)

    def integers(self, low: int, high: int, sizes: Sequence[int], dtype: Any = np.int64) -> np.ndarray:
        """Whole numbers, the highest excluded."""
        return self._numbers.integers(low, high, sizes).astype(dtype)

    def leave_out(self) -> None:
        """Leave an optional input out."""
        self._names.append("")

    def given(self, sizes: Sizes, draw: Any = None) -> None:
        """An input of each run; `draw` makes its elements of a shape."""
        name = f"x{len(self._names)}"
        shapes = [tuple(run[size] if isinstance(size, str) else size for size in sizes) for run in self._runs]
        arrays = [np.asarray((draw or (lambda shape: self.floats(*shape)))(shape)) for shape in shapes]
        declared = [size if self._open else shapes[0][place] for place, size in enumerate(sizes)]
        kind = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
        self._names.append(name)
        self._inputs.append(helper.make_tensor_value_info(name, kind, declared))
        for feeds, array in zip(self._feeds, arrays, strict=True):
            feeds[name] = array

    def held(self, array: np.ndarray, share: float = 0.8) -> None:
        """A constant; in the other cases the same in both runs."""
        if self.chance(share):
            name = f"w{len(self._names)}"
            self._names.append(name)
            self._constants[name] = np.asarray(array)
        else:
            self.given(np.shape(array), lambda shape: array)

    def node(self, operator: str, outputs: Sequence[str] = ("y",), *, domain: str = DOMAIN, **attributes: Any) -> None:
        """The operator on these inputs, and now and then another node behind it."""
        made, wanted = list(outputs), [name for name in outputs if name]
        behind = self.rng.choice(_BEHIND) if len(wanted) == 1 else ""
        if behind == "Relu" and self.dtype.kind != "f":
            behind = ""
        self._nodes.append(helper.make_node(operator, self._names, made, domain=domain, **attributes))
        if behind:
            self._nodes.append(helper.make_node(behind, wanted, ["z"]))
            wanted = ["z"]
        kind = helper.np_dtype_to_tensor_dtype(self.dtype)
        self._outputs = [helper.make_value_info(name, helper.make_tensor_type_proto(kind, None)) for name in wanted]

    def made(self) -> Made:
        """The model, and the inputs of two runs."""
        constants = [to_tensor(array, name) for name, array in self._constants.items()]
        graph = helper.make_graph(self._nodes, "contrib", self._inputs, self._outputs, constants)
        imports = [helper.make_opsetid("", self.rng.choice((14, 17, 21))), helper.make_opsetid(DOMAIN, 1)]
        return Made(helper.make_model(graph, opset_imports=imports, ir_version=8), self._feeds)
