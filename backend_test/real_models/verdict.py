# SPDX-License-Identifier: Apache-2.0
"""What a cell says: ours beside the plain engine, and ONNX Runtime without optimizations where these differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from backend_test.search.judge import agree
from onnx_multi_backend.models.graph_walk import all_nodes

#: Both run and agree; ours is right where the engine is wrong; ours runs alone; a wrong result that a warning told of.
OK, BETTER, ALONE, WARNED = "ok", "better", "ours alone", "warned"
#: Neither runs it; the engine runs it and is wrong, and ours refuses.
NEITHER, RIGHTLY = "neither", "refused rightly"
#: Refused because none of its nodes would run on the provider that was asked for, as `fallback` has it.
ELSEWHERE = "elsewhere"
#: Refused for a form that the engine computes wrongly, docs/wrong-forms.md, with other inputs than those here or in a later run.
WRONG_FORM = "wrong form"
#: Both are wrong, or so says the reference.
BOTH = "both differ"
#: Ours is worse.
REFUSED, DIFFERS, KILLED, UNTYPED = "refused", "differs", "killed", "untyped"
FINDINGS = (REFUSED, DIFFERS, KILLED, UNTYPED)

#: What such a refusal says.
_WRONG = ("it does not compute ", " would end the engine's process: ")


@dataclass(frozen=True)
class Answer:
    """Outputs, or why there are none."""

    outputs: list[Any] | None
    error: str = ""
    typed: bool = False
    where: str = ""
    killed: bool = False


def tolerance(model: ModelProto) -> float:
    """Share of the norm that two results may be apart: a rounding to the next integer is amplified layer by layer."""
    operators = {node.op_type for node in all_nodes(model)}
    if any("Quantize" in operator or operator.startswith(("QLinear", "MatMulNBits")) for operator in operators):
        return 0.1
    halves = any(tensor.data_type == TensorProto.FLOAT16 for tensor in model.graph.initializer)
    return 0.02 if halves else 2e-3


def same(apart: float, one: list[Any], other: list[Any]) -> bool:
    """Whether two results are the same but for rounding."""
    return len(one) == len(other) and all(_near(a, b, apart) for a, b in zip(one, other, strict=True))


def _near(a: Any, b: Any, apart: float) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_near(np.asarray(a[k]), np.asarray(b[k]), apart) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_near(x, y, apart) for x, y in zip(a, b, strict=True))
    if agree(a, b):
        return True
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape or x.dtype.kind != "f":
        return False
    x, y = x.astype(np.float64), y.astype(np.float64)
    if np.abs(x - y).max() < 1e-6:  # what stands for 0 in a picture of probabilities
        return True
    return bool(np.linalg.norm(x - y) <= apart * max(np.linalg.norm(y), 1e-6))


def verdict(apart: float, ours: Answer, theirs: Answer, reference: Answer, *, told: bool) -> tuple[str, str]:
    """A word and, where it is not `OK`, why."""
    if ours.killed:
        return KILLED, f"{ours.error}{' So is the plain engine.' if theirs.killed else ''}"
    right = reference.outputs
    if ours.outputs is None:
        if not ours.typed:
            return UNTYPED, f"{ours.error} ({ours.where})"
        if theirs.outputs is None:
            return NEITHER, ours.error
        if right is not None and not same(apart, theirs.outputs, right):
            return RIGHTLY, ours.error
        if ours.error.startswith("MisplacedError"):
            return ELSEWHERE, ours.error
        return (WRONG_FORM if any(words in ours.error for words in _WRONG) else REFUSED), ours.error
    if theirs.outputs is None:
        if right is not None and not same(apart, ours.outputs, right):
            return (WARNED if told else DIFFERS), f"from ONNX Runtime; the engine: {theirs.error}"
        return ALONE, theirs.error
    if same(apart, ours.outputs, theirs.outputs):
        if right is not None and not same(apart, ours.outputs, right):
            return BOTH, _how(ours.outputs, right)
        return OK, ""
    if right is None:
        return DIFFERS, _how(ours.outputs, theirs.outputs)
    if same(apart, ours.outputs, right):
        return BETTER, _how(theirs.outputs, right)
    if same(apart, theirs.outputs, right):
        return (WARNED if told else DIFFERS), _how(ours.outputs, theirs.outputs)
    return BOTH, _how(ours.outputs, right)


def _how(ours: list[Any], theirs: list[Any]) -> str:
    words = []
    for a, b in zip(ours, theirs, strict=False):
        x, y = np.asarray(a), np.asarray(b)
        if x.shape != y.shape or x.dtype != y.dtype:
            words.append(f"{x.dtype}{list(x.shape)} for {y.dtype}{list(y.shape)}")
        elif x.dtype.kind == "f" and x.size:
            x, y = x.astype(np.float64), y.astype(np.float64)
            words.append(f"{np.abs(x - y).max():.2g} of {np.abs(y).max():.2g}")
        elif x.size:
            words.append(f"{np.mean(x != y):.0%} of the elements")
    return "; ".join(words)
