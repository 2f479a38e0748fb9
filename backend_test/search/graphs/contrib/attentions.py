# SPDX-License-Identifier: Apache-2.0
"""Attentions and rotary embeddings."""

from __future__ import annotations

from typing import Any

import numpy as np

from backend_test.search.graphs.contrib.draft import Draft

Array = np.ndarray[Any, Any]

_HEADS, _SIZE = 2, 4
_HIDDEN = _HEADS * _SIZE


def _seen(shape: tuple[int, ...]) -> Array:
    """A mask in which each row of a batch sees one element more."""
    return np.tri(shape[0], shape[1], k=1, dtype=np.int32)


def _options(draft: Draft) -> dict[str, Any]:
    options: dict[str, Any] = {"num_heads": _HEADS}
    if draft.chance(0.3):
        options["scale"] = draft.rng.choice((0.3, 0.5, 1.0))
    if draft.chance(0.2):
        options["mask_filter_value"] = draft.rng.choice((-5.0, -10000.0, -3e4))
    return options


def _attention(draft: Draft) -> None:
    options = _options(draft)
    sizes = draft.rng.choice(([_HIDDEN] * 3, [_HIDDEN] * 3, [_HIDDEN, _HIDDEN, 12]))
    draft.given(["batch", "length", _HIDDEN])
    draft.held(draft.floats(_HIDDEN, sum(sizes)), 1)
    draft.held(draft.floats(sum(sizes)), 1)
    if sizes[2] != _HIDDEN:
        options["qkv_hidden_sizes"] = sizes
    if draft.chance(0.4):
        draft.given(["batch", "length"], _seen)
    else:
        draft.leave_out()
        if draft.chance(0.3):
            options["unidirectional"] = 1
    if draft.chance(0.4):
        draft.leave_out()
        draft.given(["batch", _HEADS, "length", "length"])
    draft.node("Attention", **options)


def _multi_head_attention(draft: Draft) -> None:
    options, form = _options(draft), draft.rng.choice(("apart", "apart", "past", "projected"))
    keys: dict[str, list[int | str]] = {
        "apart": ["batch", "keys", _HIDDEN],
        "past": ["batch", "length", _HIDDEN],
        "projected": ["batch", _HEADS, "keys", _SIZE],
    }
    draft.given(["batch", "length", _HIDDEN])
    draft.given(keys[form])
    draft.given(keys[form])
    if draft.chance(0.4):
        draft.held(draft.floats(3 * _HIDDEN))
    else:
        draft.leave_out()
    seen = "whole" if form == "past" else "keys"
    if draft.chance(0.3):
        draft.given(["batch", seen], _seen)
    else:
        draft.leave_out()
    if draft.chance(0.4):
        draft.given([draft.rng.choice((1, "batch")), draft.rng.choice((1, _HEADS)), "length", seen])
    else:
        draft.leave_out()
    if form == "past":
        draft.given(["batch", _HEADS, "past", _SIZE])
        draft.given(["batch", _HEADS, "past", _SIZE])
    draft.node("MultiHeadAttention", ["y", "k", "v"] if form == "past" else ["y"], **options)


def _rotary_embedding(draft: Draft) -> None:
    four, turned = draft.chance(0.4), draft.rng.choice((0, 0, 4))
    options: dict[str, Any] = {"interleaved": draft.rng.choice((0, 1))}
    if turned or draft.chance(0.5):
        options["num_heads"] = 2
    if turned:
        options["rotary_embedding_dim"] = turned
    draft.given(["batch", 2, "length", 8] if four else ["batch", "length", 16])
    if draft.chance(0.5):
        draft.given([1], lambda shape: draft.integers(0, 4, shape))
    else:
        draft.given(["batch", "length"], lambda shape: draft.integers(0, 8, shape))
    for _ in range(2):
        draft.held(draft.floats(8, (turned or 8) // 2), 1)
    draft.node("RotaryEmbedding", **options)


MAKERS = (_attention, _multi_head_attention, _rotary_embedding)
