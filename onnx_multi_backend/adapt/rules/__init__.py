# SPDX-License-Identifier: Apache-2.0
"""The rules, in the order in which they are tried: special forms first, then bodies of functions, then wider types."""

from onnx_multi_backend.adapt.rules.attention_mask import attention_mask
from onnx_multi_backend.adapt.rules.attention_scale import attention_scale
from onnx_multi_backend.adapt.rules.bit_cast import bit_cast
from onnx_multi_backend.adapt.rules.bit_shift import bit_shift
from onnx_multi_backend.adapt.rules.channel_means import channel_means
from onnx_multi_backend.adapt.rules.column_constants import column_constants
from onnx_multi_backend.adapt.rules.compress_nothing import compress_nothing
from onnx_multi_backend.adapt.rules.constant_convolutions import constant_convolutions
from onnx_multi_backend.adapt.rules.contrib import (
    contrib_pad,
    dynamic_quantize_matmul,
    matmul_integer_to_float,
    matmul_of_bits,
    qlinear_where,
    quick_gelu,
    skip_layer_normalization,
)
from onnx_multi_backend.adapt.rules.conv_integer import conv_integer_zero_points
from onnx_multi_backend.adapt.rules.conv_transpose_pads import conv_transpose_output, conv_transpose_pads
from onnx_multi_backend.adapt.rules.conv_turned import conv_turned
from onnx_multi_backend.adapt.rules.coupled_gates import coupled_gates
from onnx_multi_backend.adapt.rules.cum_prod import cum_prod
from onnx_multi_backend.adapt.rules.depth_and_space import depth_and_space
from onnx_multi_backend.adapt.rules.dequantize_blocks import dequantize_blocks
from onnx_multi_backend.adapt.rules.dequantize_large import dequantize_large
from onnx_multi_backend.adapt.rules.dequantize_wide import dequantize_wide
from onnx_multi_backend.adapt.rules.det import det
from onnx_multi_backend.adapt.rules.empty_products import empty_products
from onnx_multi_backend.adapt.rules.exact_integers import exact_integers
from onnx_multi_backend.adapt.rules.expand import expand_function
from onnx_multi_backend.adapt.rules.expand_to_nothing import expand_to_nothing
from onnx_multi_backend.adapt.rules.fourier import fourier
from onnx_multi_backend.adapt.rules.fused_activations import fused_conv, fused_gemm
from onnx_multi_backend.adapt.rules.gather_nothing import gather_nothing
from onnx_multi_backend.adapt.rules.gemm_without_c import gemm_without_c
from onnx_multi_backend.adapt.rules.grid_sample import grid_sample
from onnx_multi_backend.adapt.rules.if_condition import if_condition
from onnx_multi_backend.adapt.rules.integer_powers import integer_powers
from onnx_multi_backend.adapt.rules.integer_products import integer_products
from onnx_multi_backend.adapt.rules.integer_reduce_prod import integer_reduce_prod
from onnx_multi_backend.adapt.rules.layer_scales import layer_scales
from onnx_multi_backend.adapt.rules.loop_condition import loop_condition
from onnx_multi_backend.adapt.rules.loop_of_no_steps import loop_of_no_steps
from onnx_multi_backend.adapt.rules.loop_rows import loop_rows
from onnx_multi_backend.adapt.rules.loop_states import loop_states
from onnx_multi_backend.adapt.rules.loop_strings import loop_strings
from onnx_multi_backend.adapt.rules.lower_bound import lower_bound
from onnx_multi_backend.adapt.rules.lp_normalization import lp_normalization
from onnx_multi_backend.adapt.rules.lrn import lrn
from onnx_multi_backend.adapt.rules.matmul_integer_vectors import matmul_integer_vectors
from onnx_multi_backend.adapt.rules.max_unpool import max_unpool
from onnx_multi_backend.adapt.rules.ml.categories import label_encoder, one_hot_encoder
from onnx_multi_backend.adapt.rules.ml.features import (
    array_feature_extractor,
    binarizer,
    feature_vectorizer,
    imputer,
    normalizer,
    scaler,
)
from onnx_multi_backend.adapt.rules.ml.linear import linear_classifier, linear_regressor
from onnx_multi_backend.adapt.rules.ml.trees import tree_ensemble_classifier, tree_ensemble_regressor
from onnx_multi_backend.adapt.rules.mod import floor_mod, remainder
from onnx_multi_backend.adapt.rules.named_type import named_type
from onnx_multi_backend.adapt.rules.narrow_integers import narrow_integers
from onnx_multi_backend.adapt.rules.no_axes import no_axes
from onnx_multi_backend.adapt.rules.non_max_suppression import non_max_suppression
from onnx_multi_backend.adapt.rules.non_zero import non_zero
from onnx_multi_backend.adapt.rules.one_hot_of_nothing import one_hot_of_nothing
from onnx_multi_backend.adapt.rules.optimizers import adagrad, adam, momentum
from onnx_multi_backend.adapt.rules.optionals import optional_get_element, optional_has_element
from onnx_multi_backend.adapt.rules.pad_axes import pad_axes
from onnx_multi_backend.adapt.rules.pad_crops import pad_crops
from onnx_multi_backend.adapt.rules.pad_value import pad_value
from onnx_multi_backend.adapt.rules.pad_wrap import pad_wrap
from onnx_multi_backend.adapt.rules.pool_ceil import pool_ceil
from onnx_multi_backend.adapt.rules.pool_indices import pool_indices
from onnx_multi_backend.adapt.rules.pool_order import pool_order
from onnx_multi_backend.adapt.rules.pool_pads import pool_pads
from onnx_multi_backend.adapt.rules.pool_same import pool_same
from onnx_multi_backend.adapt.rules.pool_windows import pool_windows
from onnx_multi_backend.adapt.rules.pow_exponent import pow_exponent
from onnx_multi_backend.adapt.rules.prelu import prelu
from onnx_multi_backend.adapt.rules.quantize import quantize
from onnx_multi_backend.adapt.rules.quantized_products import quantized_products
from onnx_multi_backend.adapt.rules.range_end import range_end
from onnx_multi_backend.adapt.rules.range_type import range_type
from onnx_multi_backend.adapt.rules.recurrent_directions import recurrent_directions
from onnx_multi_backend.adapt.rules.recurrent_layout import recurrent_layout
from onnx_multi_backend.adapt.rules.recurrent_lengths import recurrent_lengths
from onnx_multi_backend.adapt.rules.reduce_axes import reduce_axes
from onnx_multi_backend.adapt.rules.reduce_functions import reduce_functions
from onnx_multi_backend.adapt.rules.resize import resize
from onnx_multi_backend.adapt.rules.resize_axes import resize_axes
from onnx_multi_backend.adapt.rules.resize_crops import resize_crops
from onnx_multi_backend.adapt.rules.roi_samples import roi_samples
from onnx_multi_backend.adapt.rules.rotary_embedding import rotary_embedding
from onnx_multi_backend.adapt.rules.round_mode import round_mode
from onnx_multi_backend.adapt.rules.run_time_scales import run_time_scales
from onnx_multi_backend.adapt.rules.scalar_scales import scalar_scales
from onnx_multi_backend.adapt.rules.scaled_apart import scaled_apart
from onnx_multi_backend.adapt.rules.scan_captures import scan_captures
from onnx_multi_backend.adapt.rules.scan_slices import scan_slices
from onnx_multi_backend.adapt.rules.scan_steps import scan_steps
from onnx_multi_backend.adapt.rules.scatter_rows import scatter_rows
from onnx_multi_backend.adapt.rules.sequence_positions import sequence_positions
from onnx_multi_backend.adapt.rules.shrink import shrink
from onnx_multi_backend.adapt.rules.slice_axes import slice_axes
from onnx_multi_backend.adapt.rules.softmax_rows import softmax_rows
from onnx_multi_backend.adapt.rules.softplus import softplus
from onnx_multi_backend.adapt.rules.special_values import special_values
from onnx_multi_backend.adapt.rules.split_sizes import split_sizes
from onnx_multi_backend.adapt.rules.strided_points import strided_points
from onnx_multi_backend.adapt.rules.string_locale import string_locale
from onnx_multi_backend.adapt.rules.string_moves import gather_strings, pad_strings
from onnx_multi_backend.adapt.rules.tensor_scatter import tensor_scatter
from onnx_multi_backend.adapt.rules.tile import tile
from onnx_multi_backend.adapt.rules.top_k_unsigned import top_k_unsigned
from onnx_multi_backend.adapt.rules.transpose_nothing import transpose_nothing
from onnx_multi_backend.adapt.rules.unique_axis import unique_axis
from onnx_multi_backend.adapt.rules.unique_order import unique_order
from onnx_multi_backend.adapt.rules.unread_saturate import unread_saturate
from onnx_multi_backend.adapt.rules.unsqueeze_axes import unsqueeze_axes
from onnx_multi_backend.adapt.rules.version import convert_version
from onnx_multi_backend.adapt.rules.widen import widen_types
from onnx_multi_backend.adapt.rules.zero_attributes import zero_attributes
from onnx_multi_backend.adapt.site import Rule

RULES: tuple[Rule, ...] = (
    array_feature_extractor,
    binarizer,
    feature_vectorizer,
    imputer,
    linear_classifier,
    linear_regressor,
    normalizer,
    scaler,
    label_encoder,
    one_hot_encoder,
    tree_ensemble_classifier,
    tree_ensemble_regressor,
    attention_mask,
    bit_cast,
    bit_shift,
    channel_means,
    column_constants,
    compress_nothing,
    constant_convolutions,
    conv_integer_zero_points,
    conv_transpose_pads,
    conv_transpose_output,
    conv_turned,
    strided_points,
    attention_scale,
    contrib_pad,
    dynamic_quantize_matmul,
    matmul_integer_to_float,
    matmul_of_bits,
    qlinear_where,
    quick_gelu,
    rotary_embedding,
    skip_layer_normalization,
    cum_prod,
    dequantize_blocks,
    scalar_scales,
    dequantize_large,
    dequantize_wide,
    det,
    exact_integers,
    integer_powers,
    integer_products,
    integer_reduce_prod,
    expand_to_nothing,
    fourier,
    fused_conv,
    fused_gemm,
    gather_nothing,
    gather_strings,
    transpose_nothing,
    gemm_without_c,
    grid_sample,
    if_condition,
    loop_of_no_steps,
    loop_strings,
    loop_states,
    loop_rows,
    loop_condition,
    lower_bound,
    lp_normalization,
    lrn,
    matmul_integer_vectors,
    max_unpool,
    floor_mod,
    remainder,
    no_axes,
    non_max_suppression,
    non_zero,
    narrow_integers,
    one_hot_of_nothing,
    adagrad,
    adam,
    momentum,
    optional_get_element,
    optional_has_element,
    pad_wrap,
    pad_strings,
    pad_axes,
    pad_crops,
    pad_value,
    pool_order,
    pool_indices,
    pool_ceil,
    pool_same,
    pool_pads,
    pool_windows,
    pow_exponent,
    prelu,
    named_type,
    quantize,
    range_type,
    range_end,
    coupled_gates,
    empty_products,
    recurrent_layout,
    recurrent_directions,
    recurrent_lengths,
    reduce_functions,
    reduce_axes,
    resize_axes,
    resize_crops,
    resize,
    roi_samples,
    round_mode,
    run_time_scales,
    quantized_products,
    scaled_apart,
    scan_captures,
    scan_slices,
    scan_steps,
    scatter_rows,
    sequence_positions,
    shrink,
    slice_axes,
    softmax_rows,
    zero_attributes,
    special_values,
    softplus,
    split_sizes,
    string_locale,
    tensor_scatter,
    tile,
    top_k_unsigned,
    unique_axis,
    unique_order,
    unread_saturate,
    unsqueeze_axes,
    layer_scales,
    expand_function,
    depth_and_space,
    convert_version,
    widen_types,
)
