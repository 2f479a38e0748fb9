# SPDX-License-Identifier: Apache-2.0
"""One model tried on one preset, beside the bare engine and the references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from onnx import ModelProto

from backend_test.search import engines, evaluator, kernels
from backend_test.search.answers import REFUSED, RESULT, Answer
from backend_test.search.isolation import Stages
from backend_test.search.judge import Verdict, judge, within_precision
from backend_test.search.stepwise import stepwise
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
    for name in _of_onnxruntime(preset):
        if answers[name].kind == RESULT and (words := kernels.errs(model)):
            answers[name] = Answer(REFUSED, error=words)
    answers["ours"] = ours(preset, data, feeds, stages, word)
    references = {n: answers[n] for n in ("unoptimized", "reference")}
    return Trial(judge(answers["ours"], answers["bare"], references), answers)


def _of_onnxruntime(preset: str) -> list[str]:
    """Who is ONNX Runtime without adaptation."""
    return ["unoptimized"] if engines.bare_of(preset) is engines.openvino else ["bare", "unoptimized"]


def ours(preset: str, data: bytes, feeds: Sequence[dict[str, Any]], stages: Stages, word: str) -> Answer:
    """The preset's answer to these inputs and the first once more; it may take as much memory as the bare engine took, beyond the limit."""
    extra = stages.taken.get(f"{word}bare", 0)
    again = [*feeds, feeds[0]]
    return stages.run(f"{word}ours", lambda note: engines.preset(preset, data, again, note), extra)


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


def opinion_by_node(
    preset: str, model: ModelProto, feeds: Sequence[dict[str, Any]], trial: Trial, stages: Stages
) -> Trial:
    """Ask ONNX's evaluator node by node, where it does not run the model as a whole."""
    data = model.SerializeToString()
    answer = stages.run("by node", lambda note: stepwise(data, feeds, note))
    answers = {**trial.answers, "reference": answer}
    references = {n: answers[n] for n in ("unoptimized", "reference", "other") if n in answers}
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
