# SPDX-License-Identifier: Apache-2.0
"""Recurrent nets and control flow of PyTorch, of random weights."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from backend_test.real_models.make.saving import export


class Tagger(nn.Module):
    """Words to tags with a recurrent layer in both directions."""

    def __init__(self, layer: type[nn.LSTM | nn.GRU]) -> None:
        super().__init__()
        self.words = nn.Embedding(200, 32)
        self.layer = layer(32, 48, num_layers=2, bidirectional=True, batch_first=True)
        self.tags = nn.Linear(96, 12)

    def forward(self, words: Tensor) -> Tensor:
        tags: Tensor = self.tags(self.layer(self.words(words))[0])
        return tags


class Steps(nn.Module):
    """A cell in a loop of as many steps as the input has, another formula for long inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.into, self.back = nn.Linear(8, 16), nn.Linear(16, 16)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.zeros(1, 16)
        for i in range(x.shape[0]):
            h = torch.tanh(self.into(x[i : i + 1]) + self.back(h))
        if x.shape[0] > 6:  # noqa: SIM108 - TorchScript
            h = torch.relu(h) * 2
        else:
            h = h - 1
        return h


class Denoiser(nn.Module):
    """A spectrum, masked, and back, as speech enhancement has it: convolutions in time and a recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Conv1d(1, 32, 16, stride=8)
        self.layer = nn.LSTM(32, 32, batch_first=True)
        self.mask = nn.Conv1d(32, 32, 1)
        self.decode = nn.ConvTranspose1d(32, 1, 16, stride=8)

    def forward(self, sound: Tensor) -> Tensor:
        x = self.encode(sound)
        h, _ = self.layer(x.transpose(1, 2))
        decoded: Tensor = self.decode(x * torch.sigmoid(self.mask(h.transpose(1, 2))))
        return decoded


def make(root: Path) -> None:
    torch.manual_seed(0)
    words = {"words": torch.randint(200, (2, 11))}
    free = {"words": {0: "batch", 1: "sequence"}}
    for layer in (nn.LSTM, nn.GRU):
        name = f"torch-{layer.__name__.lower()}-tagger-torchscript"
        export(root, name, Tagger(layer), words, ["tags"], free, dynamo=False)
    export(root, "torch-lstm-tagger", Tagger(nn.LSTM), words, ["tags"])
    steps = torch.jit.script(Steps().eval())
    export(root, "torch-loop-if", steps, {"x": torch.randn(9, 8)}, ["h"], {"x": {0: "steps"}}, dynamo=False)
    sound = {"sound": torch.randn(1, 1, 1600)}
    export(root, "torch-denoiser", Denoiser(), sound, ["clean"], {"sound": {2: "samples"}}, dynamo=False)
