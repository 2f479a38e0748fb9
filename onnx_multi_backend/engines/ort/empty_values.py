# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime gets wrong of tensors without elements (found by measuring).

Optimizers leave out nodes that make such. One takes a size of 0 in the constant shape of an Expand for one of 1, which changes nothing (1.24 to 1.32). What it computes of constants, and of the
shapes of values whose sizes are declared, is constant too. Another leaves out arithmetic with a constant without elements (1.24).
"""

from __future__ import annotations

from onnx import NodeProto, helper, numpy_helper

from onnx_multi_backend.adapt.empty_tensors import holds_empty_data
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.host.applies import applies
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.tensors import is_whole

#: The places of the inputs whose values such a node passes on, or makes others of that are 0 only if one of them is. None: all.
_VALUES: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(("Abs", "Cast", "Gather", "Identity", "Neg", "ReduceProd", "Reshape"), (0,)),
    **dict.fromkeys(("Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"), (0,)),
    **dict.fromkeys(("Concat", "Max", "Mul"), None),
    "Where": (1, 2),
}


#: Operators whose kernels refuse a tensor without elements, though ONNX knows the result, or end the process: InstanceNormalization (1.24 to 1.32).
WRONG = frozenset(
    {
        "AveragePool",
        "Conv",
        "GlobalMaxPool",
        "InstanceNormalization",
        "LayerNormalization",
        "LpPool",
        "MaxPool",
        "QLinearConv",
    }
)
#: The same of 1.24, where Einsum, LpNormalization, LRN and TopK end the process, and reductions along negative axes reduce nothing.
WRONG_BEFORE_1_31 = WRONG | {
    *(
        "Einsum",
        "LpNormalization",
        "LRN",
        "MatMul",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
    ),
    *("ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Split", "TopK"),
}


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
    if not contents.has({"Add", "Div", "Mul", "Sub"}) or not applies({"onnxruntime": "<1.32"}):
        return []
    return ["NoopElimination"] if holds_empty_data(contents, lambda tensor: 0 in tensor.dims) else []


def _may_hold_zero(names: list[str], facts: Facts) -> bool:
    makers: dict[str, NodeProto] = {}
    seen: set[str] = set()
    while names:
        name = names.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in facts.constants:
            tensor = facts.constants[name]
            if not is_whole(tensor) or (numpy_helper.to_array(tensor) == 0).any():
                return True
            continue
        makers = makers or {made: node for node in facts.contents.nodes for made in node.output}
        node = makers.get(name)
        if node is None:  # given when it runs
            continue
        if node.op_type in ("Constant", "ConstantOfShape"):
            if _holds_zero(node):
                return True
        elif node.op_type == "Shape":
            if facts.may_be_empty:
                return True
        elif node.op_type in _VALUES:
            places = _VALUES[node.op_type]
            names += node.input if places is None else [node.input[i] for i in places if i < len(node.input)]
        else:
            return True
    return False


def _holds_zero(node: NodeProto) -> bool:
    """Whether a Constant whose tensor is not small, or a ConstantOfShape, makes a 0."""
    if not node.attribute:
        return True
    value = helper.get_attribute_value(node.attribute[0])
    if node.attribute[0].HasField("t"):
        return not is_whole(value) or bool((numpy_helper.to_array(value) == 0).any())
    return not all(value) if isinstance(value, list) else not value
