# SPDX-License-Identifier: Apache-2.0
"""Around what OpenVINO gets wrong of several nodes together, where each alone is right. Its execution providers do the same."""

from __future__ import annotations

import functools

from onnx_multi_backend.adapt.single_node import carry_types
from onnx_multi_backend.engines.across_nodes.attention_constants import constant_keys
from onnx_multi_backend.engines.across_nodes.attention_queries import queries_kept
from onnx_multi_backend.engines.across_nodes.attentions import attention_outputs, half_attentions
from onnx_multi_backend.engines.across_nodes.broadcasts_apart import broadcasts_apart
from onnx_multi_backend.engines.across_nodes.by_channel import channels_apart
from onnx_multi_backend.engines.across_nodes.cast_to_places import places_apart
from onnx_multi_backend.engines.across_nodes.channel_order import channels_in_order
from onnx_multi_backend.engines.across_nodes.distinct_names import with_distinct_names
from onnx_multi_backend.engines.across_nodes.extremes_of_many import run_first
from onnx_multi_backend.engines.across_nodes.filtered_sums import filters_summed_apart
from onnx_multi_backend.engines.across_nodes.gathered_axes import gathers_apart
from onnx_multi_backend.engines.across_nodes.grown_products import growth_apart
from onnx_multi_backend.engines.across_nodes.half_divisors import half_divisors
from onnx_multi_backend.engines.across_nodes.idle_casts import idle_casts
from onnx_multi_backend.engines.across_nodes.inserted_axes import insertions_apart
from onnx_multi_backend.engines.across_nodes.joined_constants import constants_apart
from onnx_multi_backend.engines.across_nodes.joined_extremes import joined_extremes
from onnx_multi_backend.engines.across_nodes.known_signs import signs_told
from onnx_multi_backend.engines.across_nodes.layer_directions import layers_apart
from onnx_multi_backend.engines.across_nodes.merged_reductions import axes_counted_apart, means_apart
from onnx_multi_backend.engines.across_nodes.more_axes import axes_given_before
from onnx_multi_backend.engines.across_nodes.nan_made import nan_kept
from onnx_multi_backend.engines.across_nodes.near_patterns.passes import PASSES as NEAR_PATTERNS
from onnx_multi_backend.engines.across_nodes.quantized.channel_scales import scales_kept
from onnx_multi_backend.engines.across_nodes.quantized.epsilons import epsilons_kept
from onnx_multi_backend.engines.across_nodes.quantized.gathered import choices_apart, tables_apart
from onnx_multi_backend.engines.across_nodes.quantized.lost_biases import biases_added
from onnx_multi_backend.engines.across_nodes.quantized.low_precision import kept_in_place
from onnx_multi_backend.engines.across_nodes.quantized.maxima import maxima_apart
from onnx_multi_backend.engines.across_nodes.quantized.moved_limits import limits_apart
from onnx_multi_backend.engines.across_nodes.quantized.moved_weights import weights_apart
from onnx_multi_backend.engines.across_nodes.quantized.other_axes import terms_apart
from onnx_multi_backend.engines.across_nodes.quantized.pads import pads_apart
from onnx_multi_backend.engines.across_nodes.quantized.pairs import pairs_apart
from onnx_multi_backend.engines.across_nodes.quantized.pointwise import pointwise_apart
from onnx_multi_backend.engines.across_nodes.quantized.rounded_terms import terms_exact
from onnx_multi_backend.engines.across_nodes.quantized.scaled_filters import filters_apart
from onnx_multi_backend.engines.across_nodes.quantized.scaled_rows import rows_apart
from onnx_multi_backend.engines.across_nodes.quantized.shared_results import results_apart
from onnx_multi_backend.engines.across_nodes.quantized.three_axes import reductions_apart
from onnx_multi_backend.engines.across_nodes.quantized.truncating_casts import casts_kept
from onnx_multi_backend.engines.across_nodes.quantized.unit_scales import sums_kept
from onnx_multi_backend.engines.across_nodes.quantized.unsigned_activations import unsigned
from onnx_multi_backend.engines.across_nodes.quantized.vectors import vectors_apart
from onnx_multi_backend.engines.across_nodes.recurrent_states import states_apart
from onnx_multi_backend.engines.across_nodes.reduced_axes import axes_moved
from onnx_multi_backend.engines.across_nodes.rewritten import Rewritten
from onnx_multi_backend.engines.across_nodes.scaled_windows import factors_apart
from onnx_multi_backend.engines.across_nodes.shared_sequences import sequences_apart
from onnx_multi_backend.engines.across_nodes.short_rows import short_rows_apart
from onnx_multi_backend.engines.across_nodes.small_products import products_turned
from onnx_multi_backend.engines.across_nodes.two_columns import columns_apart
from onnx_multi_backend.engines.across_nodes.vector_products import vector_products
from onnx_multi_backend.engines.across_nodes.weights_in_place import weights_cast_apart
from onnx_multi_backend.engines.across_nodes.zero_scales import scales_of_zeros
from onnx_multi_backend.models.contents import Contents
from onnx_multi_backend.models.plausible import expands_too_far

#: The first ones, most of which look at quantized models.
_ON_QUANTIZED = (
    pairs_apart,
    biases_added,
    channels_in_order,
    unsigned,
    kept_in_place,
    epsilons_kept,
    terms_apart,
    terms_exact,
    sums_kept,
    choices_apart,
    weights_apart,
    reductions_apart,
    limits_apart,
    rows_apart,
    vectors_apart,
    pads_apart,
    pointwise_apart,
    maxima_apart,
    results_apart,
    casts_kept,
    scales_kept,
)

#: What the OpenVINO of the execution provider alone gets wrong, which is older.
_IN_ONNX_RUNTIME = (
    constant_keys,
    attention_outputs,
    joined_extremes,
    idle_casts,
    places_apart,
    broadcasts_apart,
    signs_told,
    short_rows_apart,
    filters_apart,
    tables_apart,
    axes_counted_apart,
    run_first,
)


def around(contents: Contents, *, in_onnx_runtime: bool = False, stays_open: bool = True) -> Rewritten | None:
    """A copy of the model that OpenVINO computes rightly; None where nothing is known, or its functions expand too far to be looked at.

    Parameters
    ----------
    contents : Contents
    in_onnx_runtime : bool
        Whether OpenVINO's execution provider gets it: comparisons are true of NaN there, the CPU provider computes what is left, and
        nothing is mended in OpenVINO's own graph.
    stays_open : bool
        Whether the sizes that the model leaves open are so when OpenVINO compiles it.
    """
    if expands_too_far(contents.model):
        return None
    found: Rewritten | None = None
    contents = with_distinct_names(contents)
    passes = (
        states_apart,
        layers_apart,
        sequences_apart,
        vector_products,
        products_turned,
        axes_given_before,
        *NEAR_PATTERNS,
        scales_of_zeros,
        means_apart,
        insertions_apart,
        gathers_apart,
        functools.partial(columns_apart, stays_open=stays_open),
        functools.partial(channels_apart, stays_open=stays_open),
        factors_apart,
        constants_apart,
        weights_cast_apart,
        half_divisors,
        growth_apart,
        filters_summed_apart,
        functools.partial(axes_moved, in_onnx_runtime=in_onnx_runtime),
        functools.partial(nan_kept, compared=in_onnx_runtime),
        half_attentions,
        *(_IN_ONNX_RUNTIME if in_onnx_runtime else ()),
        queries_kept,
    )
    for place, mend in enumerate((*_ON_QUANTIZED, *passes)):
        made = mend(contents)
        if made is not None:
            if place >= len(_ON_QUANTIZED):  # those before may give a value another type
                carry_types(contents.model, made.model)
            contents = Contents(made.model)
            before = found or Rewritten(made.model, ())
            found = Rewritten(made.model, (*before.changes, *made.changes), before.added | made.added)
    return found
