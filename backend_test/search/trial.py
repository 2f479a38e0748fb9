# SPDX-License-Identifier: Apache-2.0
"""One model tried on one preset, beside the bare engine and the references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from backend_test.search import engines, evaluator
from backend_test.search.answers import REFUSED, RESULT, Answer
from backend_test.search.isolation import Stages
from backend_test.search.judge import Verdict, agree, judge, within_precision
from backend_test.search.parts import inner_values
from onnx_multi_backend.models.graph_walk import all_nodes


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
    faulty = evaluator.errs(model)
    answers = {
        name: stages.run(f"{word}{name}", lambda note, engine=engine: engine(data, feeds, note))  # type: ignore[misc]
        for name, engine in asked.items()
        if name != "reference" or not faulty
    }
    if faulty:
        answers["reference"] = Answer(REFUSED, error=faulty)
    extra = stages.taken.get(f"{word}bare", 0)
    again = [*feeds, feeds[0]]
    answers["ours"] = stages.run(f"{word}ours", lambda note: engines.preset(preset, data, again, note), extra)
    references = {n: answers[n] for n in ("unoptimized", "reference")}
    return Trial(judge(answers["ours"], answers["bare"], references), answers)


def second_opinion(
    preset: str, model: ModelProto, feeds: Sequence[dict[str, Any]], trial: Trial, stages: Stages, word: str = ""
) -> Trial:
    """Ask the other engine too, where those that are always asked do not decide."""
    # OpenVINO and its execution provider are one engine: they are not two that agree.
    other = engines.openvino if engines.bare_of(preset) is engines.ort_cpu else engines.ort_cpu
    data = model.SerializeToString()
    answer = stages.run(f"{word}other", lambda note: other(data, feeds, note))
    answers = {**trial.answers, "other": answer}
    references = {n: answers[n] for n in ("unoptimized", "reference", "other")}
    return Trial(judge(answers["ours"], answers["bare"], references), answers)


#: Functions that are approximated, or are a difference of numbers near each other.
_APPROXIMATE = frozenset(
    "Acos Acosh Asin Asinh Atan Atanh Celu Cos Cosh Elu Erf Exp Gelu Log LogSoftmax Mish Selu Sigmoid Sin Sinh Softmax Softplus "
    "Swish Tan Tanh ReduceLogSum ReduceLogSumExp HardSwish BlackmanWindow HammingWindow HannWindow GRU LSTM RNN".split()
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
    """Whether rounding changes the result as much as a wrong one would: then it proves nothing.

    Once the inputs and constants are rounded otherwise, and once every value between is moved by a rounding of its largest number:
    what is compared, cut off or sorted there may fall to the other side.
    """
    data = model.SerializeToString()
    ask = engines.ort_unoptimized
    base = ask(data, feeds)
    if base.kind != RESULT:
        ask = engines.reference
        base = ask(data, feeds)
    rng = np.random.default_rng(0)
    tries = [_shaken(model, feeds, rng) for _ in range(3)]
    try:
        between = inner_values(model, feeds)
    except Exception:  # an evaluator that fails here leaves the values between as they are
        between = []
    if between:
        tries += [(_moved(model, between, sign), feeds) for sign in (1, -1)]
    for other, fed in tries:
        answer = ask(other.SerializeToString(), fed)
        if any(not all(map(agree, a, b)) for a, b in zip(base.runs, answer.runs, strict=False)):
            return True
    return False


#: A rounding: a few steps of each type around 1.
_ROUNDING = {"float64": 1e-9, "float32": 3e-7, "float16": 1e-3, "bfloat16": 8e-3}


def _shaken(
    model: ModelProto, feeds: Sequence[dict[str, Any]], rng: np.random.Generator
) -> tuple[ModelProto, list[dict[str, Any]]]:
    """The model and its inputs with every float rounded otherwise."""

    def moved(array: Any) -> Any:
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "fV":
            return array
        step = _ROUNDING.get(array.dtype.name, 8e-3)
        with np.errstate(all="ignore"):
            return (array.astype(np.float64) * (1 + step * rng.uniform(-1, 1, array.shape))).astype(array.dtype)

    other = ModelProto()
    other.CopyFrom(model)
    made = [a.t for n in other.graph.node if n.op_type == "Constant" for a in n.attribute if a.HasField("t")]
    for tensor in (*other.graph.initializer, *made):
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
            tensor.CopyFrom(numpy_helper.from_array(moved(numpy_helper.to_array(tensor)), tensor.name))
    return other, [{name: moved(array) for name, array in fed.items()} for fed in feeds]


def _moved(model: ModelProto, values: Sequence[Mapping[str, Any]], sign: int) -> ModelProto:
    """The model with a rounding added to every float between its nodes."""
    other = ModelProto()
    other.CopyFrom(model)
    read = {name for node in model.graph.node for name in node.input}
    nodes: list[NodeProto] = []
    for node in other.graph.node:
        nodes.append(node)
        for place, name in enumerate(node.output):
            held = [v.get(name) for v in values]
            if (
                name not in read
                or node.op_type in ("Constant", "Optional")
                or not all(isinstance(a, np.ndarray) for a in held)
            ):
                continue
            dtype = held[0].dtype  # type: ignore[union-attr]
            if dtype.name not in ("float32", "float64", "float16"):
                continue
            finite = [np.abs(a[np.isfinite(a)]).max(initial=0) for a in held]  # type: ignore[index]
            step = np.array(sign * _ROUNDING[dtype.name] * float(max(finite)), dtype)
            other.graph.initializer.append(numpy_helper.from_array(step, f"{name}/step"))
            node.output[place] = f"{name}/exact"
            nodes.append(helper.make_node("Add", [f"{name}/exact", f"{name}/step"], [name]))
    del other.graph.node[:]
    other.graph.node.extend(nodes)
    return other
