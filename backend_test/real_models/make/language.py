# SPDX-License-Identifier: Apache-2.0
"""Small transformers of Hugging Face's configurations, of random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers.cache_utils import DynamicCache

from backend_test.real_models.make import torchvision_alone  # noqa: F401 - transformers imports torchvision
from backend_test.real_models.make.saving import export

_SMALL: dict[str, Any] = {
    "hidden_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 256,
    "vocab_size": 500,
}
_TEXT = {"input_ids": {0: "batch", 1: "sequence"}, "attention_mask": {0: "batch", 1: "sequence"}}


class Takes(nn.Module):
    """A model with positional inputs, and one of its outputs."""

    def __init__(self, model: nn.Module, inputs: list[str], output: str, **fixed: Any) -> None:
        super().__init__()
        self.model, self.inputs, self.output, self.fixed = model, inputs, output, fixed

    def forward(self, *given: Tensor) -> Tensor:
        found = self.model(**dict(zip(self.inputs, given, strict=True)), **self.fixed)
        tensor: Tensor = getattr(found, self.output)
        return tensor


class Cached(nn.Module):
    """One step of a decoder with the keys and values of the steps before, one layer."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor, key: Tensor, value: Tensor) -> Any:
        cache = DynamicCache()
        cache.update(key, value, 0)
        out = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        (layer,) = out.past_key_values.layers
        return out.logits, layer.keys, layer.values


def make(root: Path) -> None:
    torch.manual_seed(0)
    text = {"input_ids": torch.randint(500, (2, 16)), "attention_mask": torch.ones(2, 16, dtype=torch.int64)}
    text["attention_mask"][1, 12:] = 0
    for name, kind in (("bert", "BertModel"), ("distilbert", "DistilBertModel"), ("roberta", "RobertaModel")):
        config = getattr(transformers, kind).config_class(**_SMALL)
        if name == "distilbert":
            config = transformers.DistilBertConfig(dim=128, n_layers=3, n_heads=4, hidden_dim=256, vocab_size=500)
        config._attn_implementation = "eager"
        net = Takes(getattr(transformers, kind)(config), list(text), "last_hidden_state")
        export(root, f"transformers-{name}-torchscript", net, text, ["hidden"], _TEXT, dynamo=False)
    causal: dict[str, Any] = {
        "gpt2": transformers.GPT2Config(n_embd=128, n_layer=3, n_head=4, vocab_size=500, n_positions=128),
        "llama": transformers.LlamaConfig(**_SMALL, num_key_value_heads=2),
        "qwen3": transformers.Qwen3Config(**_SMALL, num_key_value_heads=2, head_dim=32),
    }
    for name, config in causal.items():
        model = transformers.AutoModelForCausalLM.from_config(config)
        net = Takes(model, list(text), "logits", use_cache=False)
        export(root, f"transformers-{name}", net, text, ["logits"])
    one = transformers.LlamaConfig(**{**_SMALL, "num_hidden_layers": 1}, num_key_value_heads=2)
    step = {
        "input_ids": torch.randint(500, (1, 1)),
        "attention_mask": torch.ones(1, 8, dtype=torch.int64),
        "past_key": torch.randn(1, 2, 7, 32),
        "past_value": torch.randn(1, 2, 7, 32),
    }
    export(root, "transformers-llama-cached", Cached(transformers.LlamaForCausalLM(one)), step, ["logits", "k", "v"])
    whisper = transformers.WhisperConfig(
        vocab_size=500,
        d_model=64,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_source_positions=150,
        max_target_positions=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    model = transformers.WhisperModel(whisper)
    sound = {"features": torch.randn(1, 80, 300)}
    export(
        root,
        "transformers-whisper-encoder",
        Takes(model.encoder, ["input_features"], "last_hidden_state"),
        sound,
        ["h"],
    )
    tokens = {"tokens": torch.randint(500, (1, 5)), "encoded": torch.randn(1, 150, 64)}
    names = ["input_ids", "encoder_hidden_states"]
    decoder = Takes(model.decoder, names, "last_hidden_state", use_cache=False)
    export(root, "transformers-whisper-decoder", decoder, tokens, ["h"])
    t5 = transformers.T5EncoderModel(
        transformers.T5Config(vocab_size=500, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4)
    )
    export(root, "transformers-t5-encoder", Takes(t5, list(text), "last_hidden_state"), text, ["h"])
