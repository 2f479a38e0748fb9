# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that ONNX Runtime's CUDA provider accepts, and then computes wrongly or refuses when it runs.

Source: measured with 1.31.1 on an H200, each form beside the CPU provider and ONNX's reference evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.extremes import LARGEST
from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.rules.instance_of_one import may_be_of_one
from onnx_multi_backend.adapt.rules.quantize import made_type
from onnx_multi_backend.adapt.rules.reduce_functions import reduces_nothing
from onnx_multi_backend.adapt.rules.scalars import REFUSED
from onnx_multi_backend.adapt.rules.variadic_pairs import OF_TWO, broadcasts_one_way
from onnx_multi_backend.adapt.site import INTEGER_BITS, Site
from onnx_multi_backend.engines.defect import FindDefect, Several, find, worse
from onnx_multi_backend.engines.ort import defects, integers
from onnx_multi_backend.engines.ort.defects import WITH_GAPS, Table
from onnx_multi_backend.engines.ort.resize_defects import wrongly_sized
from onnx_multi_backend.models.graph_walk import canonical

_T = TensorProto
_PACKED = (_T.INT4, _T.UINT4)
#: Of float16, the extreme of infinities is right.
_BEGIN_FINITE = (_T.FLOAT, _T.DOUBLE, _T.BFLOAT16)
_SUMMED = ("LogSoftmax", "Softmax", "SoftmaxCrossEntropyLoss")
#: Whose kernels have the defects of the CPU provider's.
_AS_ON_CPU = ("AveragePool", "Mod")
#: What float64 holds of int64.
_EXACT = 2**53
#: The types that ScatterND's kernel reduces.
_SCATTERED = (_T.FLOAT, _T.FLOAT16)


def _attention(site: Site) -> Defect | None:
    if site.has_output(3) and site.attribute("qk_matmul_output_mode", 0):
        return Defect("another qk_matmul_output than the bare product is refused at run time")
    if not site.has_input(3) or not site.has_input(6):
        return None
    mask, keys = site.shape(site.input(3)), site.shape(site.input(1))
    if not mask or not keys or len(keys) < 2 or mask[-1] is None or mask[-1] != keys[-2]:
        return Defect("a mask beside nonpad_kv_seqlen is refused at run time unless it is as wide as the keys")
    return None


def _argument(site: Site) -> Defect | None:
    """Source: measured; along the last axis it is right."""
    rank, axis = site.rank(site.input(0)), site.attribute("axis", 0)
    if GUARDED in site.node.name or site.elem_type(site.input(0)) not in LARGEST or axis == -1 or axis + 1 == rank:
        return None
    return Defect("of infinities alone, the index is beyond the axis", wrong=True)


def _blocks(site: Site) -> Defect | None:
    kind = made_type(site) if site.op_type == "QuantizeLinear" else site.elem_type(site.input(0))
    if site.attribute("block_size", 0) and kind not in _PACKED:
        return Defect("blocks of other types than int4 and uint4 are refused at run time")
    return None


def _extreme(site: Site) -> Defect | None:
    if GUARDED in site.node.name or site.elem_type(site.input(0)) not in _BEGIN_FINITE:
        return None
    return Defect("the extreme of infinities alone is the largest finite number", wrong=True)


def _compared(site: Site) -> Defect | None:
    x = site.input(0)
    if GUARDED in site.node.name or site.elem_type(x) != _T.INT64 or site.value(x).within(-_EXACT, _EXACT):
        return None
    return Defect("int64 is compared in float64, which holds it up to 2**53", wrong=True)


def _instance(site: Site) -> Defect | None:
    if GUARDED in site.node.name or not may_be_of_one(site):
        return None
    return Defect("of channels of one element, the result is NaN", wrong=True)


def _layer(site: Site) -> Defect | None:
    """Source: measured, and the kernel, which reorders known weights once, and a bias only with them."""
    if GUARDED in site.node.name or not site.has_input(3) or site.is_known(site.input(3)):
        return None
    return Defect("beside weights that are known before anything runs, a bias that is not is left out", wrong=True)


def _logarithm(site: Site) -> Defect | None:
    shape = site.shape(site.input(0))
    if site.elem_type(site.input(0)) not in LARGEST or (shape is not None and all(shape)):
        return None
    return Defect("the logarithm of an empty sum is 0", wrong=True)


def _power(site: Site) -> Defect | None:
    """Source: measured; 3 to the power of 1 is 2."""
    if site.elem_type(site.input(0)) not in INTEGER_BITS:
        return None
    return Defect("a power of an integer is computed in float64, and cut off below the whole number", wrong=True)


def _reduced(site: Site) -> Defect | None:
    """Source: measured of ReduceL2, and the kernel, which copies whatever it is to compute."""
    if reduces_nothing(site):
        return Defect("where no axis is reduced, elements are passed on as they are", wrong=True)
    return None


def _resized(site: Site) -> Defect | None:
    """Source: measured, with Resize of int32: what lies between two elements is 0.

    Upsample rounds down. Of sizes, the code that it shares with the CPU provider.
    """
    if defect := wrongly_sized(site):
        return defect
    if site.attribute("mode", "nearest") == "nearest" or site.elem_type(site.input(0)) not in INTEGER_BITS:
        return None
    return Defect("integers are interpolated with weights that are cut to integers", wrong=True)


def _scalar(site: Site) -> Defect | None:
    if site.rank(site.input(0)) != 0:
        return None
    return Defect("a tensor without axes is refused at run time")


def _scatter(site: Site) -> Defect | None:
    if site.attribute("reduction", "none") == "none" or site.elem_type(site.input(0)) in _SCATTERED:
        return None
    return Defect("a reduction of other types than float32 and float16 is refused at run time")


def _several(site: Site) -> Defect | None:
    """Source: measured, and the kernel: where an input has one element along an axis, the stride of the input before it is kept."""
    if len(site.node.input) < 3 or broadcasts_one_way(site):
        return None
    return Defect(
        "of three or more tensors, those of different shapes are broadcast as the one before them", wrong=True
    )


def _sign(site: Site) -> Defect | None:
    if GUARDED in site.node.name or site.elem_type(site.input(0)) not in LARGEST:
        return None
    return Defect("the sign of NaN is 0")


def _softmax(site: Site) -> Defect | None:
    if site.elem_type(site.input(0)) == _T.DOUBLE:
        return Defect("float64 is summed in float32")
    return None


def _strings(site: Site) -> Defect | None:
    """If and Loop are taken for CUDA with strings too, and copy them between the memories as if they were numbers."""
    if any(site.elem_type(name) == _T.STRING for name in site.node.output if name):
        return Defect("strings that it makes end the process", wrong=True, deadly=True)
    return None


def _top_k(site: Site) -> Defect | None:
    """Source: measured; a row is padded with the largest finite number to the width of a kernel."""
    if GUARDED in site.node.name or site.elem_type(site.input(0)) not in LARGEST:
        return None
    return Defect("an infinity that comes last makes room for an index beyond the row", wrong=True)


DEFECTS: Mapping[str, FindDefect] = {
    **dict.fromkeys(("ArgMax", "ArgMin"), _argument),
    "Attention": _attention,
    **{name: defects.DEFECTS[name] for name in _AS_ON_CPU},
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), _blocks),
    **dict.fromkeys(("If", "Loop"), _strings),
    **dict.fromkeys(_SUMMED, _softmax),
    "InstanceNormalization": _instance,
    **dict.fromkeys(LAYERS, _layer),
    "MaxPool": WITH_GAPS,
    **dict.fromkeys(OF_TWO, _several),
    "Pow": _power,
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceSumSquare"), _reduced),
    **dict.fromkeys(("ReduceLogSum", "ReduceLogSumExp"), Several((_logarithm, _reduced))),
    **dict.fromkeys(("ReduceMax", "ReduceMin"), Several((_extreme, _compared))),
    **dict.fromkeys(("Resize", "Upsample"), _resized),
    **dict.fromkeys(REFUSED, _scalar),
    "ScatterND": _scatter,
    "Sign": _sign,
    "TopK": _top_k,
}


def may_have_defect(node: NodeProto, facts: Facts) -> bool:
    """Whether the table may know something of a node."""
    if canonical(node.domain):
        return False
    if node.op_type in _AS_ON_CPU or node.op_type == "MaxPool":
        return defects.may_have_defect(node, facts)
    if node.op_type in ("If", "Loop"):
        return facts.may_hold(_T.STRING)
    if node.op_type in _SUMMED:
        return facts.may_hold_doubles
    if node.op_type in ("DequantizeLinear", "QuantizeLinear"):
        return any(a.name == "block_size" and a.i for a in node.attribute)
    if node.op_type == "Attention":
        return len(node.output) > 3 or len(node.input) > 6
    if node.op_type in OF_TWO:
        return len(node.input) > 2
    if node.op_type in LAYERS:
        return len(node.input) > 3
    return node.op_type in DEFECTS


def _find(site: Site) -> Defect | None:
    defect = DEFECTS.get(site.op_type) if not site.domain else None
    return worse(find(defect, site) if defect else None, integers.computed_in_float64(site))


CUDA = Table(
    may_have_defect=may_have_defect,
    operators=frozenset(DEFECTS),
    find=_find,
    integers=integers.may_be_computed_in_float64,
    integer_operators=integers.IN_FLOAT64,
)
