# SPDX-License-Identifier: Apache-2.0
"""One model tried on one preset, beside the bare engine and the references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from onnx import ModelProto

from backend_test.search import engines
from backend_test.search.answers import RESULT, Answer
from backend_test.search.isolation import GIB, Stages
from backend_test.search.judge import Verdict, judge, within_precision
from onnx_multi_backend.graph_walk import all_nodes


class Trial(NamedTuple):
    """What came of a model.

    Attributes
    ----------
    answers : dict of str to Answer
        By name: ``ours``, ``bare``, ``unoptimized``, ``reference``.
    """

    verdict: Verdict
    answers: dict[str, Answer]


def try_model(preset: str, model: ModelProto, feeds: Sequence[dict[str, Any]], stages: Stages, word: str = "") -> Trial:
    """Ask everybody, and judge. `word` stands before the names of the stages."""
    data = model.SerializeToString()
    asked = {
        "bare": engines.bare_of(preset),
        "unoptimized": engines.ort_unoptimized,
        "reference": engines.reference,
    }
    answers = {
        name: stages.run(f"{word}{name}", lambda note, engine=engine: engine(data, feeds, note), 4 * GIB)  # type: ignore[misc]
        for name, engine in asked.items()
    }
    extra = stages.taken.get(f"{word}bare", 0)
    again = [*feeds, feeds[0]]
    answers["ours"] = stages.run(f"{word}ours", lambda note: engines.preset(preset, data, again, note), extra)
    references = {n: answers[n] for n in ("unoptimized", "reference")}
    return Trial(judge(answers["ours"], answers["bare"], references), answers)


def second_opinion(
    preset: str, model: ModelProto, feeds: Sequence[dict[str, Any]], trial: Trial, stages: Stages, word: str = ""
) -> Trial:
    """Ask the other engine too, where those that are always asked do not decide."""
    other = engines.openvino if engines.bare_of(preset) is not engines.openvino else engines.ort_cpu
    data = model.SerializeToString()
    answer = stages.run(f"{word}other", lambda note: other(data, feeds, note), 4 * GIB)
    answers = {**trial.answers, "other": answer}
    references = {n: answers[n] for n in ("unoptimized", "reference", "other")}
    return Trial(judge(answers["ours"], answers["bare"], references), answers)


#: Functions that are approximated, or are a difference of numbers near each other.
_APPROXIMATE = frozenset(
    "Acos Acosh Asin Asinh Atan Atanh Celu Cos Cosh Elu Erf Exp Gelu Log LogSoftmax Mish Selu Sigmoid Sin Sinh Softmax Softplus "
    "Swish Tan Tanh ReduceLogSum ReduceLogSumExp HardSwish".split()
)


def approximate(model: ModelProto, trial: Trial) -> bool:
    """Whether a difference is no more than such a function's own error."""
    ours = trial.answers["ours"].runs
    if not any(n.op_type in _APPROXIMATE for n in all_nodes(model)):
        return False
    for name, answer in trial.answers.items():
        if name == "ours" or name == "bare":
            continue
        for run, outputs in enumerate(ours):
            others = answer.runs[run % 2] if len(answer.runs) > run % 2 else []
            if len(others) != len(outputs) or not all(map(within_precision, outputs, others)):
                break
        else:
            return bool(ours)
    return False


def sensitive(model: ModelProto, feeds: Sequence[dict[str, Any]]) -> bool:
    """Whether a rounding of the inputs changes the result as much as a wrong one would: then it proves nothing."""
    import numpy as np
    from onnx import TensorProto, numpy_helper

    from backend_test.search.judge import agree

    base = engines.ort_unoptimized(model.SerializeToString(), feeds)
    if base.kind != RESULT:
        base = engines.reference(model.SerializeToString(), feeds)
    rng = np.random.default_rng(0)

    def moved(array: Any) -> Any:
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fV":
            return array
        step = {"float64": 1e-9, "float32": 3e-7, "float16": 1e-3}.get(array.dtype.name, 8e-3)
        with np.errstate(all="ignore"):
            return (array.astype(np.float64) * (1 + step * rng.uniform(-1, 1, array.shape))).astype(array.dtype)

    floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE)
    for _ in range(3):
        other = ModelProto()
        other.CopyFrom(model)
        for tensor in other.graph.initializer:
            if tensor.data_type in floats:
                tensor.CopyFrom(numpy_helper.from_array(moved(numpy_helper.to_array(tensor)), tensor.name))
        shaken = [{name: moved(array) for name, array in fed.items()} for fed in feeds]
        ask = engines.ort_unoptimized if base.kind == RESULT else engines.reference
        answer = ask(other.SerializeToString(), shaken)
        if any(not agree(a, b) for a, b in zip(base.runs, answer.runs, strict=False)):
            return True
    return False
