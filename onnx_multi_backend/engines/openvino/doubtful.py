# SPDX-License-Identifier: Apache-2.0
"""What a node says itself of the forms that OpenVINO computes wrongly, and what constants add: no types are inferred for this."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

from onnx_multi_backend.adapt.facts import Facts
from onnx_multi_backend.adapt.operators.products import PRODUCTS
from onnx_multi_backend.adapt.operators.recurrent import LAYERS
from onnx_multi_backend.adapt.passes import broadcast_axes
from onnx_multi_backend.adapt.rules.channel_means import MEANS, RANKS
from onnx_multi_backend.adapt.rules.constant_convolutions import CONVOLUTIONS
from onnx_multi_backend.adapt.rules.conv_turned import WEIGHTS
from onnx_multi_backend.adapt.rules.dequantize_large import LARGEST_SCALES
from onnx_multi_backend.adapt.rules.dequantize_wide import HALVES, WIDE
from onnx_multi_backend.adapt.rules.no_axes import may_have_no_axes
from onnx_multi_backend.adapt.rules.run_time_scales import PLACES
from onnx_multi_backend.adapt.rules.strided_points import may_stride_over_pads
from onnx_multi_backend.adapt.rules.zero_attributes import ATTRIBUTES, has_a_zero_attribute
from onnx_multi_backend.engines.openvino.product_defects import WINDOWS
from onnx_multi_backend.engines.openvino.quotient_defects import may_be_divided_wrongly
from onnx_multi_backend.engines.openvino.resize_defects import grows_plainly
from onnx_multi_backend.models.tensors import is_whole

_SIXTEEN = (TensorProto.INT16, TensorProto.UINT16)

#: Without one of these attributes set, nodes of common operators are right; looking no further costs nothing.
_ONLY_WITH: Mapping[str, frozenset[str]] = {
    "Conv": frozenset(),
    "ConvTranspose": frozenset({"auto_pad", "output_shape"}),
    **dict.fromkeys(("ReduceL1", "ReduceLogSum"), frozenset({"axes", "noop_with_empty_axes"})),
    "ReduceL2": frozenset({"noop_with_empty_axes"}),
    "AveragePool": frozenset({"ceil_mode"}),
    "LpPool": frozenset({"ceil_mode"}),
    "MaxPool": frozenset({"ceil_mode"}),
    "Mod": frozenset({"fmod"}),
    "Split": frozenset({"num_outputs"}),
}

#: The place of the input without which, known before anything runs, nodes are right.
_ONLY_WITH_CONSTANT: Mapping[str, int] = {"Compress": 1}

#: What `product_defects.unwritten` may know of.
_UNWRITTEN = PRODUCTS | WINDOWS


def may_be_meant(node: NodeProto, facts: Facts) -> bool:
    """Whether a node of an operator that `defects` knows leaves room for a defect, on any release."""
    if node.op_type in _UNWRITTEN and facts.may_be_empty:
        return True
    if node.op_type in ("Einsum", "GridSample", "MatMul"):
        return False
    if node.op_type in broadcast_axes.OPERATORS:
        return broadcast_axes.names_axis(node, facts.opset)
    if node.op_type == "MatMulInteger":
        return _may_multiply_a_vector(node, facts)
    if node.op_type == "Div":
        return may_be_divided_wrongly(node, facts)
    if node.op_type == "Softmax":
        return _goes_over_several_axes(node, facts)
    if node.op_type == "Gather":
        return facts.may_be_empty or not facts.computed_of_constants.isdisjoint(node.input) or _gathers_far(node, facts)
    if node.op_type == "Gemm":
        beta_is_0 = any(a.name == "beta" and not a.f for a in node.attribute)
        return len(node.input) > 2 and (beta_is_0 or _may_have_two_columns(node, facts))
    if node.op_type == "Transpose":
        return facts.may_be_empty
    if node.op_type == "PRelu":
        return _may_have_wrong_slopes(node, facts)
    if node.op_type == "Slice":
        along = node.input[3] if len(node.input) > 3 else ""
        return bool(along) and along not in facts.known and not _is_given(node.input[1], facts)
    if node.op_type in CONVOLUTIONS and _of_constants(node, facts, slice(1)):
        return True
    if node.op_type == "MaxPool" and len(node.output) > 1:
        return True
    if node.op_type in ("SequenceAt", "SequenceErase"):
        return len(node.input) > 1 and node.input[1] not in facts.known
    if node.op_type == "SequenceInsert":
        return len(node.input) > 2 and node.input[2] not in facts.known
    if node.op_type == "Unsqueeze":
        return may_have_no_axes(node, facts)
    if node.op_type == "Expand":
        return (
            facts.may_be_empty
            or not facts.computed_of_constants.isdisjoint(node.input[1:])
            or _may_have_a_size_of_0(node, facts)
        )
    if node.op_type == "GatherND":
        return _may_gather_beyond(node, facts)
    if node.op_type in _ONLY_WITH_CONSTANT:
        return facts.may_be_empty or facts.may_know(node, _ONLY_WITH_CONSTANT[node.op_type])
    if node.op_type in MEANS:
        return _may_take_channel_means(node, facts)
    if node.op_type == "LRN":
        return _has_an_even_window(node) or _has_a_fraction(node) or _may_have_any_channels(node, facts)
    if node.op_type == "Pad":
        return _may_be_padded_wrongly(node, facts)
    if node.op_type == "QuantizeLinear":
        return _may_be_quantized_wrongly(node, facts)
    if node.op_type in WEIGHTS and _may_make_a_column(node, facts):
        return True
    if node.op_type in ("Conv", "ConvInteger"):
        return node.op_type == "Conv" and may_stride_over_pads(node)
    if node.op_type == "QLinearConv" and (_may_scale_channels(node, facts) or _of_constants(node, facts)):
        return True
    if node.op_type == "DequantizeLinear" and any(
        may(node, facts) for may in (_may_be_moved_far, _may_be_rounded, _may_get_an_axis)
    ):
        return True
    if node.op_type in PLACES:
        return _scales_at_run_time(node, facts)
    if node.op_type == "Clip":
        given = [bool(name) for name in node.input]
        return given[1:2] == [True] and not any(given[2:]) and not facts.are_floats(node.input[:2])
    if node.op_type == "Cast":
        return any(a.name == "to" and a.i == TensorProto.FLOAT8E8M0 for a in node.attribute)
    if node.op_type == "LayerNormalization":
        shapes = [facts.shape(name) for name in node.input[1:] if name]
        of_the_last = all(shape is None or len(shape) == 1 for shape in shapes)
        return not of_the_last or any(a.name == "axis" and a.i != -1 for a in node.attribute)
    if node.op_type == "CastLike":
        return facts.may_hold(TensorProto.FLOAT8E8M0)
    if node.op_type in LAYERS:
        return facts.may_be_empty or _may_be_an_unusual_layer(node, facts)
    if node.op_type in ATTRIBUTES:
        return has_a_zero_attribute(node)
    if node.op_type == "Resize":
        return not grows_plainly(node, facts)
    wanted = _ONLY_WITH.get(node.op_type)
    return wanted is None or any(a.name in wanted and helper.get_attribute_value(a) for a in node.attribute)


def _may_be_an_unusual_layer(node: NodeProto, facts: Facts) -> bool:
    """Whether a recurrent layer has lengths of sequences, peepholes, an attribute that may not be read as it is meant, or may have no steps, batch or features."""
    shape = facts.shape(node.input[0])
    if shape is None or 0 in shape:
        return True
    if any(len(node.input) > place and node.input[place] for place in (4, 7)):
        return True
    given = {a.name: a for a in node.attribute}
    if any(name in given and given[name].i for name in ("layout", "input_forget")):
        return True
    return "activations" in given and given.get("direction", AttributeProto()).s == b"bidirectional"


def _is_given(name: str, facts: Facts) -> bool:
    """Whether a run gives a value to the model."""
    return any(value.name == name for value in facts.model.graph.input)


def _may_have_two_columns(node: NodeProto, facts: Facts) -> bool:
    """Whether a Gemm has a constant of two elements in a row, and weights of a shape that neither a constant nor an input tells."""
    if node.input[1] in facts.known and not facts.model.functions:
        return False
    if _is_given(node.input[1], facts):
        sizes = facts.shape(node.input[1])
        if sizes and all(size is not None and size > 0 for size in sizes):
            return False
    name = facts.before_identities(node.input[2])
    tensor = facts.constants.get(name)
    if tensor is None:
        return bool(facts.model.functions) or name in facts.computed_of_constants
    return list(tensor.dims)[-1:] == [2] and math.prod(tensor.dims) == 2


def _may_multiply_a_vector(node: NodeProto, facts: Facts) -> bool:
    """Whether the first factor of a product may have one axis."""
    shape = facts.shape(node.input[0]) if node.input else None
    return shape is None or len(shape) == 1


def _may_make_a_column(node: NodeProto, facts: Facts) -> bool:
    """Whether a Conv has a stride along its columns alone, and may have one channel."""
    strides = next((list(a.ints) for a in node.attribute if a.name == "strides"), [])
    if len(strides) < 2 or strides[-1] < 2 or strides[-2] != 1 or len(node.input) <= WEIGHTS[node.op_type]:
        return False
    if any(a.name == "group" and a.i > 1 for a in node.attribute):  # each group has one channel of its own
        return False
    shape = facts.shape(node.input[WEIGHTS[node.op_type]])
    return shape is None or len(shape) < 2 or shape[1] in (1, None)


def _gathers_far(node: NodeProto, facts: Facts) -> bool:
    """Whether a Gather reads more than the first and the last element, by indices that are known; a shape is long enough."""
    tensor = facts.constants.get(node.input[1]) if len(node.input) > 1 else None
    if tensor is None or not is_whole(tensor) or node.input[0] in facts.shapes:
        return False
    indices = numpy_helper.to_array(tensor)
    if not ((indices > 0) | (indices < -1)).any():
        return False
    shape, axis = facts.shape(node.input[0]), next((a.i for a in node.attribute if a.name == "axis"), 0)
    size = shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None
    return size is None or not ((indices < size) & (indices >= -size)).all()


def _may_have_a_size_of_0(node: NodeProto, facts: Facts) -> bool:
    """Whether an Expand is given a constant shape that has a 0, or nothing in it."""
    if not facts.may_know(node, 1) or facts.model.functions:
        return facts.may_know(node, 1)
    shapes = facts.namesakes[node.input[1]]
    return any(
        not is_whole(shape) or not numpy_helper.to_array(shape).size or 0 in numpy_helper.to_array(shape)
        for shape in shapes
    )


def _may_gather_beyond(node: NodeProto, facts: Facts) -> bool:
    """Whether a GatherND has constant indices that may lie beyond its data."""
    if not facts.may_know(node, 1) or facts.model.functions:
        return facts.may_know(node, 1)
    shape, first = facts.shape(node.input[0]), next((a.i for a in node.attribute if a.name == "batch_dims"), 0)
    for tensor in facts.namesakes[node.input[1]]:
        if shape is None or not is_whole(tensor) or not tensor.dims:
            return True
        indices = numpy_helper.to_array(tensor)
        sizes = [size for size in shape[first : first + indices.shape[-1]] if size is not None]
        if len(sizes) < indices.shape[-1] or ((indices >= sizes) | (indices < np.negative(sizes))).any():
            return True
    return False


def _goes_over_several_axes(node: NodeProto, facts: Facts) -> bool:
    """Whether a Softmax of opset 11 or 12 may have axes behind its own; a local function's opset may be older than the model's."""
    if facts.opset >= 13 or (facts.opset < 11 and not facts.model.functions):
        return False
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    if axis == -1:
        return False
    shape = facts.shape(node.input[0]) or facts.shape(node.output[0])
    return shape is None or axis != len(shape) - 1


def _may_take_channel_means(node: NodeProto, facts: Facts) -> bool:
    """Whether a mean goes along three axes, as far as its constants tell, of what may have more, and several channels."""
    axes = next((len(a.ints) for a in node.attribute if a.name == "axes" and not a.ref_attr_name), None)
    if len(node.input) > 1 and node.input[1]:
        tensor = facts.constants.get(node.input[1])
        axes = None if tensor is None else math.prod(tensor.dims)
    unknown = axes is None and (bool(facts.model.functions) or len(node.input) > 1 or node.op_type != "ReduceMean")
    shape = facts.shape(node.input[0]) if node.input else None
    return (unknown or axes == 3) and (shape is None or (len(shape) in RANKS and shape[1] != 1))


def _has_an_even_window(node: NodeProto) -> bool:
    """Whether an LRN sums an even number of channels; one that a local function's caller gives counts as even."""
    return any(a.name == "size" and a.i % 2 == 0 for a in node.attribute)


def _has_a_fraction(node: NodeProto) -> bool:
    """Whether the bias of an LRN is no whole number, or is given by a local function's caller."""
    return any(a.name == "bias" and (a.ref_attr_name or not a.f.is_integer()) for a in node.attribute)


def _may_have_any_channels(node: NodeProto, facts: Facts) -> bool:
    """Whether an LRN sums 5 of a number of channels that may be known only at run time."""
    if not any(a.name == "size" and a.i == 5 for a in node.attribute):
        return False
    shape = facts.shape(node.input[0]) if node.input else None
    return shape is None or None in shape[1:2]


def _may_have_wrong_slopes(node: NodeProto, facts: Facts) -> bool:
    """Whether a PRelu has a single axis of slopes, as far as its constants tell."""
    tensor = facts.constants.get(node.input[1]) if len(node.input) > 1 else None
    return tensor is None or (len(tensor.dims) == 1 and tensor.dims[0] != 1)


def _may_be_padded_wrongly(node: NodeProto, facts: Facts) -> bool:
    """Whether a Pad names axes, has pads that are known and negative, or a value, though not pads, that is known only in a run."""
    if facts.model.functions or (len(node.input) > 3 and node.input[3]):
        return True
    if len(node.input) > 2 and node.input[2] and node.input[2] not in facts.known:
        inputs = (value.name for value in facts.model.graph.input)
        if node.input[1] in facts.known or node.input[1] not in inputs:
            return True
    if any(a.name == "pads" and any(size < 0 for size in a.ints) for a in node.attribute):
        return True
    if not facts.may_know(node, 1):
        given = (value.name for value in facts.model.graph.input)
        return not facts.known.isdisjoint(node.input[1:2]) or any(name in node.input[1:2] for name in given)
    pads = facts.certain.get(node.input[1])
    return pads is None or not is_whole(pads) or bool((numpy_helper.to_array(pads) < 0).any())


def _is_large(scale: TensorProto) -> bool:
    """Whether an integer of 16 bits may be large once it is scaled."""
    most = LARGEST_SCALES.get(scale.data_type)
    return most is not None and is_whole(scale) and bool((np.abs(numpy_helper.to_array(scale)) > most).any())


def _may_be_moved_far(node: NodeProto, facts: Facts) -> bool:
    """Whether a DequantizeLinear has a zero point and a large scale."""
    scale = facts.certain.get(node.input[1]) if len(node.input) > 2 and node.input[2] else None
    return scale is not None and _is_large(scale)


def _may_be_quantized_wrongly(node: NodeProto, facts: Facts) -> bool:
    """Whether a QuantizeLinear may have more than one scale, or make other integers than uint8 by its name or of 16 bits."""
    scale, zero = (facts.certain.get(name) for name in (*node.input[1:3], "")[:2])
    if scale is None or list(scale.dims) not in ([], [1]) or _may_get_an_axis(node, facts):
        return True
    if _is_large(scale):
        return True
    if len(node.input) > 2 and node.input[2]:
        return zero is None or zero.data_type in _SIXTEEN
    return any(a.name == "output_dtype" and a.i not in (0, TensorProto.UINT8) for a in node.attribute)


def _scales_at_run_time(node: NodeProto, facts: Facts) -> bool:
    """Whether a node has a scale or a zero point that is not known before anything runs."""
    places = [i for _, *factors in PLACES[node.op_type] for i in factors]
    return any(i < len(node.input) and node.input[i] and node.input[i] not in facts.known for i in places)


def _may_be_rounded(node: NodeProto, facts: Facts) -> bool:
    """Whether a DequantizeLinear has blocks, or may have a scale of bfloat16, or constants that float16 does not hold."""
    if any(a.name == "block_size" and a.i for a in node.attribute):
        return True
    if len(node.input) < 2 or facts.model.functions:
        return len(node.input) > 1
    scale = facts.kinds.get(node.input[1]) or frozenset(filter(facts.may_hold, HALVES))
    scale |= {a.i for a in node.attribute if a.name == "output_dtype" and a.i}
    wide = any(not facts.kinds.get(name, frozenset()).isdisjoint(WIDE) for name in node.input[::2])
    return TensorProto.BFLOAT16 in scale or (wide and TensorProto.FLOAT16 in scale)


def _may_get_an_axis(node: NodeProto, facts: Facts) -> bool:
    """Whether a node may scale a scalar by a scale of one axis."""
    scales = facts.namesakes.get(node.input[1], ()) if len(node.input) > 1 else ()
    data = facts.namesakes.get(node.input[0], ())
    return any(list(scale.dims) == [1] for scale in scales) and (not data or not all(tensor.dims for tensor in data))


def _of_constants(node: NodeProto, facts: Facts, places: slice = slice(0, 4, 3)) -> bool:
    """Whether a convolution may be of constants, or of what is computed of them; what a local function is given may be one."""
    if facts.model.functions:
        return True
    return all(name in facts.known or name in facts.computed_of_constants for name in node.input[places])


def _may_scale_channels(node: NodeProto, facts: Facts) -> bool:
    """Whether a QLinearConv may have a scale or a zero point for each channel, as far as its constants tell."""
    found = [facts.constants.get(name) for name in node.input[4:6]]
    return any(tensor is None or list(tensor.dims) not in ([], [1]) for tensor in found)
