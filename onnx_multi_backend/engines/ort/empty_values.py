# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime gets wrong of tensors without elements (found by measuring).

Optimizers leave out nodes that make such. One takes a size of 0 in the constant shape of an Expand for one of 1, which changes nothing (1.24 to
1.32). What it computes of constants, and of the shapes of values whose sizes are declared, is constant too. Another leaves out arithmetic with a
constant without elements (1.24).
"""

from __future__ import annotations

from collections import defaultdict

from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.empty_tensors import holds_empty_data
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.engines.across_nodes.emptied import EMPTYING
from onnx_multi_backend.engines.across_nodes.nothing_guarded import nothing_guarded
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.tensors import is_whole

#: The places of the inputs whose values such a node passes on, or makes others of that are 0 only if one of them is. None: all.
_VALUES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("Abs", "Gather", "Identity", "Neg", "ReduceProd", "Reshape"), (0,)),
    **dict.fromkeys(("Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"), (0,)),
    **dict.fromkeys(("Concat", "Max", "Mul"), None),
    "Where": (1, 2),
}


#: Operators of integers whose sums of nothing are memory that was never written (1.24 to 1.32).
_UNWRITTEN = frozenset({"ConvInteger", "MatMulInteger", "QLinearConv", "QLinearMatMul"})
#: Of com.microsoft: they divide by sizes, or ask for memory of none.
CONTRIB = frozenset(
    {"BiasGelu", "DynamicQuantizeLSTM", "GroupQueryAttention", "MultiHeadAttention", "SkipLayerNormalization"}
)
#: Operators that end the process over a tensor without elements (1.24 to 1.32), or leave results unwritten, and one that newer releases refuse of an
#: empty batch.
DEADLY = (
    _UNWRITTEN
    | CONTRIB
    | {"Attention", "ConvTranspose", "Einsum", "GRU", "InstanceNormalization", "LSTM", "RoiAlign", "STFT", "Unique"}
)
#: Those of which that is known though only a run tells that there are none, and which can be kept from computing then.
_GUARDED = frozenset({"Einsum", "GRU", "InstanceNormalization", "LSTM", "Unique"})
_GUARDED_BEFORE_1_32 = _GUARDED | {"LRN", "LpNormalization", "OneHot", "TopK"}
#: Operators whose kernels may refuse such a tensor, though ONNX knows the result.
WRONG = DEADLY | {
    "AveragePool",
    "Conv",
    "GlobalMaxPool",
    "LayerNormalization",
    "LpPool",
    "MaxPool",
    "RNN",
}
#: Before 1.32 reductions along negative axes reduce nothing, and in 1.24 more end the process.
DEADLY_BEFORE_1_32 = DEADLY | {
    *(
        "DFT",
        "LpNormalization",
        "LRN",
        "MaxPool",
        "OneHot",
        "RNN",
        "TensorScatter",
        "TopK",
    ),
    *(
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
    ),
    "ReduceSumSquare",
}
WRONG_BEFORE_1_32 = WRONG | DEADLY_BEFORE_1_32 | {"MatMul", "Split"}


def guarded(contents: Contents) -> Rewritten | None:
    """A copy of the model in which these are computed only of what has elements; None where there are none."""
    if not contents.has(_GUARDED_BEFORE_1_32) or not contents.has(EMPTYING):
        return None
    return nothing_guarded(contents, _GUARDED_BEFORE_1_32 if applies({"onnxruntime": "<1.32"}) else _GUARDED)


def guarded_if_left(contents: Contents) -> Rewritten | None:
    """The same of what OpenVINO's provider leaves to the CPU provider: TopK, which ends the process there before 1.32."""
    if not contents.has({"TopK"}) or not applies({"onnxruntime": "<1.32"}):
        return None
    return nothing_guarded(contents, {"TopK"})


def of_empty_results(contents: Contents) -> list[str]:
    """The optimizers that must not see a model for that."""
    return [*_of_expands(contents), *_of_arithmetic(contents)]


def _of_expands(contents: Contents) -> list[str]:
    if not contents.has({"Expand"}):
        return []
    facts = Facts(contents.model, contents)
    shapes = [node.input[1] for node in contents.of("Expand") if len(node.input) > 1]
    # What a local function is given is not followed.
    return ["ExpandElimination"] if contents.model.functions or _may_hold_zero(shapes, facts) else []


def _of_arithmetic(contents: Contents) -> list[str]:
    if not contents.has({"Add", "Div", "Mul", "Sub"}) or not holds_empty_data(contents):
        return []
    return ["NoopElimination"] if applies({"onnxruntime": "<1.32"}) else []


def _may_hold_zero(names: list[str], facts: Facts) -> bool:
    """Whether one of these values may be computed of constants alone and hold a 0; what Shape tells may be of what nodes left nothing of."""
    makers: defaultdict[str, list[NodeProto]] = defaultdict(list)  # a name may mean something else in each graph
    stored: defaultdict[str, list[TensorProto]] = defaultdict(list)
    for name, tensor in facts.small:
        stored[name].append(tensor)
    seen: set[str] = set()
    while names:
        name = names.pop()
        if name in seen:
            continue
        seen.add(name)
        if any(map(_has_zero, stored.get(name, ()))):
            return True
        if not makers and name not in stored:
            for node in facts.contents.nodes:
                for made in node.output:
                    makers[made].append(node)
        for node in makers.get(name, ()):
            if node.op_type in ("Constant", "ConstantOfShape"):
                if _makes_zero(node):
                    return True
            elif node.op_type in _VALUES:
                places = _VALUES[node.op_type]
                names += node.input if places is None else [node.input[i] for i in places if i < len(node.input)]
            else:
                return True
    return False


def _has_zero(tensor: TensorProto) -> bool:
    return not is_whole(tensor) or bool((numpy_helper.to_array(tensor) == 0).any())


def _makes_zero(node: NodeProto) -> bool:
    """Whether a Constant or ConstantOfShape makes a 0."""
    if not node.attribute:
        return True
    value = helper.get_attribute_value(node.attribute[0])
    if node.attribute[0].HasField("t"):
        return _has_zero(value)
    return not all(value) if isinstance(value, list) else not value
