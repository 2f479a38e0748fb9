# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that ONNX Runtime accepts, and then computes wrongly or refuses when it runs (1.24 to 1.32)."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.intervals.values import Value
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.operators.contrib import DOMAIN, IN_BYTES
from onnx_multi_backend.adapt.operators.masks import one_row
from onnx_multi_backend.adapt.operators.pools import (
    POOLS,
    TOLD_OF_WINDOWS,
    dilates_into_auto_pad,
    gaps_under_auto_pad,
    leaves_a_window_out,
    may_leave_a_window_out,
)
from onnx_multi_backend.adapt.operators.products import PRODUCTS, adds_nothing, makes_nothing
from onnx_multi_backend.adapt.operators.scales import SCALED
from onnx_multi_backend.adapt.operators.string_rows import (
    gathers_rows_of_strings,
    may_collect_strings,
    rows_of_strings,
    shared_rows,
)
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines.attention import as_many_queries
from onnx_multi_backend.engines.defect import FindDefect, Only, Several, worse
from onnx_multi_backend.engines.ort import integers
from onnx_multi_backend.engines.ort.normalizations import NORMALIZATIONS
from onnx_multi_backend.engines.ort.resize_defects import may_be_resized_wrongly, resized
from onnx_multi_backend.host.applies import When, applies
from onnx_multi_backend.models.graph_walk import canonical

_BEFORE_1_27: When = {"onnxruntime": "<1.27"}
_BEFORE_1_31: When = {"onnxruntime": "<1.31"}
#: The opset in which ONNX Runtime puts a function's body in the place of an operator whose type it has no kernel for.
_INLINED = 18
#: Since this opset it does so for ReduceLogSumExp of any type (seen with 1.32).
_INLINED_AGAIN = 28
#: The most axes that are pooled over.
_MOST_POOLED = 3
_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
_HALVES = (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def _attention(site: Site) -> Defect | None:
    masked = site.has_input(3) or site.attribute("is_causal", 0)
    if masked and site.has_output(3):
        shown = site.attribute("qk_matmul_output_mode", 0) in (1, 2)  # before the mask, or after the softmax: no -inf
        return Defect("masked elements of qk_matmul_output are the lowest finite number, not -inf", wrong=shown)
    if site.has_input(3) and site.has_input(6):
        return Defect("a mask beside nonpad_kv_seqlen is refused at run time unless it is as wide as the keys")
    if one_row(site):
        return Defect("a mask of one row for several queries is refused at run time")
    if site.elem_type(site.input(0)) == TensorProto.FLOAT16:
        return Defect("float16 is accumulated in float16")
    return None


def _softcapped(site: Site) -> Defect | None:
    """Source: https://github.com/microsoft/onnxruntime/pull/28379."""
    if site.attribute("softcap", 0.0) and site.has_input(3):
        return Defect("the mask is added before softcap, so that a masked key keeps some weight", wrong=True)
    return None


def _causal_padded(site: Site) -> Defect | None:
    """Source: https://github.com/microsoft/onnxruntime/issues/28904."""
    if site.attribute("is_causal", 0) and site.has_input(6):
        return Defect("the causal mask beside nonpad_kv_seqlen is aligned to the first key", wrong=True)
    return None


def _causal_query(site: Site) -> Defect | None:
    """Source: measured."""
    if not site.attribute("is_causal", 0) or site.has_input(4) or as_many_queries(site):
        return None
    shape = site.shape(site.input(0))
    if shape is not None and len(shape) > 1 and shape[-2] not in (1, None):
        return None
    return Defect("the causal mask is not applied to a single query", wrong=True)


def _conv_integer(site: Site) -> Defect | None:
    shape = site.shape(site.input(3)) if site.has_input(3) else []
    if shape is None or (len(shape) == 1 and shape != [1]):
        return Defect("a weight zero point for each channel is refused at run time")
    return None


def _fourier(site: Site) -> Defect | None:
    if site.elem_type(site.input(0)) == TensorProto.FLOAT:
        return Defect("float32 is summed in float32: zeros come out as residues of up to 3e-4 (onnx/onnx#4798)")
    return None


def _gather(site: Site) -> Defect | None:
    """Source: measured with 1.24 to 1.32."""
    if gathers_rows_of_strings(site):
        return Defect("of several strings behind an index, only the first is copied", wrong=True)
    return None


def _loop(site: Site) -> Defect | None:
    """Source: measured with 1.31 and 1.32. An Identity in a Loop's body shares the memory of what it passes on."""
    if shared_rows(site):
        return Defect("strings are moved into a scan output: a value that it passes on is empty afterwards", wrong=True)
    return None


def _loop_before_1_31(site: Site) -> Defect | None:
    """Source: measured with 1.24, 1.25 and 1.27; it happens in a run."""
    if rows_of_strings(site):
        return Defect("a scan output of strings is copied byte by byte, which ends the process", wrong=True)
    return None


def _max_unpool(site: Site) -> Defect | None:
    if len(site.attribute("kernel_shape", [])) > _MOST_POOLED:
        return Defect(f"more than {_MOST_POOLED} spatial axes are refused at run time")
    return None


def _mod(site: Site) -> Defect | None:
    if not site.attribute("fmod", 0) and site.elem_type(site.input(0)) in _FLOATS:
        return Defect("fmod=0 of floating-point types is refused at run time")
    return None


def _mod_before_28(site: Site) -> Defect | None:
    """ONNX has allowed it since opset 28."""
    return _mod(site) if site.opset < 28 else None


def _one_hot(site: Site) -> Defect | None:
    """Source: measured; with 1.32 it is right."""
    if 0 in (site.shape(site.input(0)) or ()):
        return Defect("a OneHot of no indices ends the process", wrong=True, deadly=True)
    return None


def _pool(site: Site) -> Defect | None:
    if dilates_into_auto_pad(site.node):
        return Defect("the padding that auto_pad stands for is computed as if there were no dilations", wrong=True)
    return None


def _pool_left_out(site: Site) -> Defect | None:
    """Source: measured: onnx infers another size below opset 22, and ONNX Runtime computes Shape from what it infers."""
    if site.opset < TOLD_OF_WINDOWS and leaves_a_window_out(site):
        return Defect("Shape tells a window that is left out", wrong=True)
    return None


def _sums_nothing(site: Site) -> Defect | None:
    """Source: measured with sizes that are known, and others; what is computed of floats is 0, but in 1.24 for ConvTranspose, and for Einsum, which may end the process."""
    if adds_nothing(site) and not makes_nothing(site):
        return Defect("of sums of nothing, memory that was never written is the result", wrong=True)
    return None


def _pool_with_gaps(site: Site) -> Defect | None:
    """Source: measured. With Conv, and in 1.24, such an image is not padded, as TensorFlow has it.

    Where larger gaps put the first window, ONNX Runtime 1.24 and ONNX's evaluator do not agree with that.
    """
    gaps = gaps_under_auto_pad(site.node)
    if max(gaps, default=0) != 1:
        return None
    sizes = (site.shape(site.input(0)) or [None] * (2 + len(gaps)))[2:]
    found = zip(sizes, gaps, site.attribute("strides", []), strict=False)
    if any(gap == 1 and (size is None or size % stride == 0) for size, gap, stride in found):
        return Defect("auto_pad with strides longer than the window is refused at run time")
    return None


def _reduce(site: Site) -> Defect | None:
    shape = site.shape(site.input(0))
    may_be_empty = shape is None or not all(shape)
    if may_be_empty and site.elem_type(site.input(0)) == TensorProto.BOOL:
        return Defect("an empty set of bool is refused at run time")
    return None


def _prelu(site: Site) -> Defect | None:
    x, slope = site.shape(site.input(0)), site.shape(site.input(1))
    if x is None or slope is None:
        return None
    pairs = zip(reversed(x), reversed(slope), strict=False)
    if len(slope) > len(x) or any(s not in (1, None) and n is not None and s != n for n, s in pairs):
        return Defect("a slope that does not broadcast is refused at run time")
    return None


def _recurrent(site: Site) -> Defect | None:
    if site.elem_type(site.input(0)) == TensorProto.DOUBLE:
        return Defect("float64 is refused at run time")
    return None


def _scatter(site: Site) -> Defect | None:
    """Source: measured with 1.24 and 1.32; of threads https://github.com/microsoft/onnxruntime/issues/18048."""
    reduction, kind = site.attribute("reduction", "none"), site.elem_type(site.input(0))
    of_bits = kind == TensorProto.BOOL and reduction in ("max", "min")
    if reduction != "none" and (of_bits or kind in _HALVES):
        return Defect(f"the reduction {reduction!r} of this type is refused at run time")
    if site.op_type == "ScatterND" and reduction != "none" and not _apart(site):
        return Defect("what several threads reduce into one element may be lost")
    return None


def _apart(site: Site) -> bool:
    """Whether the places that a ScatterND writes to are known, and each once."""
    indices = site.input(1)
    shape, places = site.shape(indices), site.constant(indices)
    if shape and shape[-1] == 0:  # each of them all of the data
        return False
    if shape is not None and math.prod(2 if size is None else size for size in shape[:-1]) <= 1:
        return True
    if places is None or not places.ndim or (places < 0).any():
        return False
    rows = places.reshape(-1, places.shape[-1])
    return len(np.unique(rows, axis=0)) == len(rows)


def _sign(site: Site) -> Defect | None:
    if site.elem_type(site.input(0)) in _HALVES and GUARDED not in site.node.name:
        return Defect("the sign of a NaN of 16 bits is 0")
    return None


def _exponential(site: Site) -> Defect | None:
    """Source: measured; in other opsets ONNX Runtime casts to float32, and computes with its own kernel."""
    kind = site.elem_type(site.input(0))
    doubles = kind == TensorProto.DOUBLE and site.op_type == "Softplus"
    again = site.op_type == "ReduceLogSumExp" and site.opset >= _INLINED_AGAIN
    if doubles or again or (site.opset == _INLINED and kind in _HALVES):
        return Defect("the body in its schema takes its place, whose Exp is infinite for large numbers")
    return None


#: Of pools, on CUDA too.
WITH_GAPS = Only({"onnxruntime": ">=1.25"}, _pool_with_gaps)


def _vectorizer(site: Site) -> Defect | None:
    rows = [(site.shape(name) or [None])[0] for name in site.node.input]
    return None if all(rows) else Defect("an empty batch ends the process")


def _roi_align(site: Site) -> Defect | None:
    """Source: measured with 1.24 and 1.32; of a constant the process ends."""
    if 0 in (site.shape(site.input(0)) or ())[2:]:
        return Defect("of images without pixels, other memory is read", wrong=True, deadly=True)
    return None


def _bits(site: Site) -> Defect | None:
    """Source: measured with 1.24 and 1.32."""
    given = [site.input(place) for place in (2, 3) if site.has_input(place)]
    if site.attribute("accuracy_level", 0) != IN_BYTES or all(map(site.is_known, given)):
        return None
    return Defect("of scales or zero points that only a run tells the product is any number", wrong=True)


def _chosen(site: Site) -> Defect | None:
    """Source: measured with 1.24 to 1.32."""
    if all(site.is_known(site.input(place)) for place in (3, 6)):
        return None
    return Defect("a zero point of what is chosen that only a run tells ends the process", wrong=True, deadly=True)


DEFECTS: Mapping[str, FindDefect] = {
    **NORMALIZATIONS,
    "Attention": Several(
        (
            Only(_BEFORE_1_27, _softcapped),
            Only({"onnxruntime": "<1.28"}, _causal_padded),
            Only(_BEFORE_1_31, _causal_query),
            _attention,
        )
    ),
    "AveragePool": Several((_pool, _pool_left_out, WITH_GAPS)),
    "ConvInteger": Several((_conv_integer, _sums_nothing)),
    "DFT": _fourier,
    **dict.fromkeys(("ConvTranspose", "Einsum"), Only(_BEFORE_1_31, _sums_nothing)),
    "Gather": _gather,
    "GRU": _recurrent,
    "LSTM": _recurrent,
    "Loop": Several((Only(_BEFORE_1_31, _loop_before_1_31), _loop)),
    "LpPool": Several((_pool, _pool_left_out)),
    **dict.fromkeys(("MatMulInteger", "QLinearConv", "QLinearMatMul"), _sums_nothing),
    "MaxPool": Several((_pool, _pool_left_out, WITH_GAPS)),
    "MaxUnpool": _max_unpool,
    "Mod": Several((Only({"onnxruntime": "<1.32"}, _mod), _mod_before_28)),
    "OneHot": Only(_BEFORE_1_31, _one_hot),
    "PRelu": _prelu,
    "ReduceMax": _reduce,
    "ReduceMin": _reduce,
    "ReduceLogSumExp": _exponential,
    "Resize": resized,
    "RoiAlign": _roi_align,
    **dict.fromkeys(("ScatterElements", "ScatterND"), _scatter),
    "STFT": _fourier,
    "Sign": _sign,
    "Softplus": _exponential,
}


#: Of other domains; no operator has its name in two of them.
_OTHERS: Mapping[str, Mapping[str, FindDefect]] = {
    "ai.onnx.ml": {"FeatureVectorizer": _vectorizer},
    DOMAIN: {"MatMulNBits": _bits, "QLinearWhere": _chosen},
}
_OF_OTHERS = frozenset(name for others in _OTHERS.values() for name in others)


def may_have_defect(node: NodeProto, facts: Facts) -> bool:
    """Whether `find` may know something of a node."""
    if domain := canonical(node.domain):
        return node.op_type in _OTHERS.get(domain, ())
    if node.op_type in POOLS:
        left_out = facts.opset < TOLD_OF_WINDOWS and may_leave_a_window_out(node)
        return left_out or dilates_into_auto_pad(node) or max(gaps_under_auto_pad(node), default=0) == 1
    if node.op_type in ("GRU", "LSTM"):
        return facts.may_hold_doubles
    if node.op_type in ("ReduceLogSumExp", "Softplus"):
        halves = facts.opset == _INLINED and any(map(facts.may_hold, _HALVES))
        again = facts.opset >= _INLINED_AGAIN and node.op_type == "ReduceLogSumExp"
        return halves or again or facts.may_hold_doubles
    if node.op_type in ("ReduceMax", "ReduceMin"):
        return not facts.are_floats(node.input[:1])
    if node.op_type in SCALED:
        return node.input[1] not in facts.known
    if node.op_type in PRODUCTS and facts.may_be_empty:
        return True
    if node.op_type in ("ConvTranspose", "Einsum", "MatMulInteger", "QLinearConv", "QLinearMatMul"):
        return False
    if node.op_type == "ConvInteger":
        zero = facts.certain.get(node.input[3]) if len(node.input) > 3 else None
        return zero is None or list(zero.dims) not in ([], [1])
    if node.op_type == "Resize":
        return may_be_resized_wrongly(node, facts)
    if node.op_type == "RoiAlign":
        return facts.may_be_empty
    if node.op_type in ("ScatterElements", "ScatterND"):
        return any(a.name == "reduction" and a.s != b"none" for a in node.attribute)
    if node.op_type == "Mod":
        return not any(_are_integers(facts, name) for name in node.input)
    if node.op_type == "Gather":
        return facts.may_hold(TensorProto.STRING)
    if node.op_type == "Loop":
        return may_collect_strings(node)
    if node.op_type == "OneHot":
        return applies(_BEFORE_1_31)
    return node.op_type in DEFECTS


def _are_integers(facts: Facts, name: str) -> bool:
    """Whether a value is known before anything runs, and of an integer type."""
    kinds = facts.kinds.get(name)
    return kinds is not None and kinds.isdisjoint(_FLOATS)


def find(site: Site) -> Defect | None:
    """What is wrong with the CPU provider's form of a node; None where nothing is known."""
    defect = (_OTHERS.get(site.domain, {}) if site.domain else DEFECTS).get(site.op_type)
    return worse(defect(site) if defect else None, integers.find(site))


class Table(NamedTuple):
    """The forms that one execution provider computes wrongly.

    Attributes
    ----------
    may_have_defect : callable
        Whether `find` may know something of a node.
    operators : collection of str
        The operators of which that may be true.
    find : callable
        What is wrong with a node's form; None where nothing is known.
    special : callable
        What is wrong with a node's special values, which counts for nodes that rules write.
    integers : callable
        Whether `find` may know something of a node because of the integers that it reads.
    integer_operators : frozenset of str or None
        The operators of which that may be true; None where the node has to be looked at.
    """

    may_have_defect: Callable[[NodeProto, Facts], bool] = lambda node, facts: False
    operators: Collection[str] = ()
    find: FindDefect = lambda site: None
    special: FindDefect = lambda site: None
    integers: Callable[[NodeProto, list[Value]], bool] = lambda node, read: False
    integer_operators: frozenset[str] | None = frozenset()


def _erf(site: Site) -> Defect | None:
    if GUARDED in site.node.name or site.elem_type(site.input(0)) not in _FLOATS:
        return None
    return Defect("the Erf of NaN is 1 or -1")


#: Of the CPU provider's kernels, in nodes that rules write.
_SPECIAL: Mapping[str, FindDefect] = {"Erf": Only(_BEFORE_1_31, _erf)}


def _special_of_cpu(site: Site) -> Defect | None:
    defect = _SPECIAL.get(site.op_type) if not site.domain else None
    return defect(site) if defect else None


NONE = Table()
CPU = Table(
    may_have_defect,
    frozenset(DEFECTS) | _OF_OTHERS,
    find,
    _special_of_cpu,
    integers.may_have_defect,
    integers.OPERATORS,
)
