# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO may compute in the kernel of what stands before it: activations, and arithmetic with constants."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from onnx import NodeProto

from onnx_multi_backend.models.graph_walk import canonical

#: ONNX Runtime's has products and activations too.
DOMAINS = ("", "com.microsoft")
ARITHMETIC = frozenset({"Add", "Div", "Mean", "Mul", "PRelu", "Sub", "Sum"})
PASSING = frozenset(
    """Abs Cast Ceil Celu Clip Dropout Elu Erf Exp Flatten Floor Gelu HardSigmoid HardSwish Identity LeakyRelu Log Max Min Mish Neg Pow QuickGelu
    Reciprocal Relu Reshape Round Selu Sigmoid Sign Softplus Softsign Sqrt Squeeze Swish Tanh ThresholdedRelu Unsqueeze""".split()
)


def in_one_kernel(
    first: NodeProto,
    readers: Mapping[str, list[NodeProto]],
    constants: Collection[str],
    over: Collection[str] = PASSING,
) -> Iterator[tuple[NodeProto, list[str]]]:
    """The nodes behind a first one that may end its kernel or be computed in it, each with its other inputs.

    `over`: what may be computed in it, or is left out since it changes nothing.
    """
    waiting, seen = list(first.output[:1]), set(first.output[:1])
    while waiting:
        read = waiting.pop()
        for node in readers.get(read, ()):
            if canonical(node.domain) not in DOMAINS:
                continue
            others = [other for other in node.input if other and other != read]
            yield node, others
            # An activation may be written with several nodes.
            follows = node.op_type in ARITHMETIC and all(o in constants or o in seen for o in others)
            if (node.op_type in over or follows) and node.output[0] not in seen:
                seen.add(node.output[0])
                waiting.append(node.output[0])


def processor_has(instruction_set: str) -> bool:
    """Whether this processor has an instruction set, which decides about kernels."""
    from onnx_multi_backend.host import processor  # asked of few models, and imported for these alone

    return instruction_set in processor.current().instruction_sets
