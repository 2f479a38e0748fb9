# SPDX-License-Identifier: Apache-2.0
"""Families of transformers whose graphs differ from those of `language`, of random weights, as PyTorch's older exporter writes them.

Most models on the web are that exporter's: sizes are computed in the graph, and no types are declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from backend_test.real_models.make.language import Takes
from backend_test.real_models.make.saving import export

_SMALL: dict[str, Any] = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 500}
_TEXT: dict[str, Any] = {**_SMALL, "intermediate_size": 128}
_VISION: dict[str, Any] = {k: v for k, v in _TEXT.items() if k != "vocab_size"} | {"image_size": 64}
_SEQ2SEQ: dict[str, Any] = {
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 128),
    "d_model": 64,
}
_SOUND: dict[str, Any] = {
    **_TEXT,
    "hidden_size": 32,
    "vocab_size": 32,
    "conv_dim": [16] * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
_OPEN = {0: "batch", 1: "length"}


def make(root: Path) -> None:
    torch.manual_seed(0)
    ids, mask = torch.randint(5, 400, (2, 12)), torch.ones(2, 12, dtype=torch.int64)
    mask[1, 9:] = 0
    text = {"input_ids": ids, "attention_mask": mask}
    for name, kind, config in (
        ("deberta", "DebertaV2Model", {**_TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
        ("mpnet", "MPNetModel", _TEXT),
        ("squeezebert", "SqueezeBertModel", {**_TEXT, "embedding_size": 64}),
    ):
        _export(root, name, kind, config, text, dict.fromkeys(text, _OPEN))
    for name, kind, config in (
        ("bloom", "BloomForCausalLM", {"hidden_size": 64, "n_layer": 2, "n_head": 4, "vocab_size": 500}),
        ("gemma3", "Gemma3ForCausalLM", {**_TEXT, "num_key_value_heads": 2, "head_dim": 16, "sliding_window": 6}),
        ("opt", "OPTForCausalLM", {**_SMALL, "ffn_dim": 128, "word_embed_proj_dim": 64, "max_position_embeddings": 64}),
    ):
        _export(root, name, kind, config, text, dict.fromkeys(text, _OPEN), "logits", use_cache=False)
    answering = {**text, "decoder_input_ids": ids[:, :7]}
    names: dict[str, Any] = dict.fromkeys(text, _OPEN) | {"decoder_input_ids": {0: "batch", 1: "answered"}}
    bart = {**_SEQ2SEQ, "vocab_size": 500, "max_position_embeddings": 64}
    _export(root, "bart", "BartForConditionalGeneration", bart, answering, names, "logits", use_cache=False)
    t5 = {"vocab_size": 500, "d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 4}
    _export(root, "t5", "T5ForConditionalGeneration", t5, answering, names, "logits", use_cache=False)
    image = {"pixel_values": torch.randn(1, 3, 64, 64)}
    for name, kind, config in (
        ("beit", "BeitModel", {**_VISION, "use_relative_position_bias": True}),
        ("dinov2", "Dinov2Model", {**_VISION, "patch_size": 16, "image_size": 48}),
        (
            "swinv2",
            "Swinv2Model",
            {
                "image_size": 64,
                "patch_size": 4,
                "embed_dim": 16,
                "depths": [1, 2],
                "num_heads": [2, 4],
                "window_size": 4,
            },
        ),
    ):
        _export(root, name, kind, config, image, {"pixel_values": {0: "batch"}})
    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1] * 4, out_features=["stage4"]
    )
    detr = {**_SEQ2SEQ, "num_queries": 10, "use_timm_backbone": False, "backbone": None, "backbone_config": backbone}
    _export(root, "detr", "DetrForObjectDetection", {**detr, "use_pretrained_backbone": False}, image, {}, "logits")
    sound = {"input_values": torch.randn(1, 4000)}
    _export(root, "wav2vec2", "Wav2Vec2ForCTC", _SOUND, sound, {"input_values": {0: "batch", 1: "samples"}}, "logits")


def _export(
    root: Path,
    name: str,
    kind: str,
    config: Mapping[str, Any],
    given: Mapping[str, Tensor],
    dynamic: Mapping[str, Mapping[int, str]],
    output: str = "last_hidden_state",
    **fixed: Any,
) -> None:
    made = getattr(transformers, kind)
    net = Takes(made(made.config_class(**config)), list(given), output, **fixed)
    export(root, f"transformers-{name}-torchscript", net, given, [output], dynamic, dynamo=False)
