# SPDX-License-Identifier: Apache-2.0
"""Two PyTorch modules, a transformer block and a convolutional net, in the newest opsets of PyTorch and of ONNX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx
import torch
from onnx import version_converter
from torch import Tensor, nn
from torch.nn import functional

from backend_test.exporters.exported import Exported

#: The newest that PyTorch 2.13 writes. Asked for a newer one, it gives up converting and stamps opset 18.
OPSET = 25


def export() -> Iterator[Exported]:
    torch.manual_seed(0)
    yield from _both_opsets("transformer", *transformer())
    yield from _both_opsets("convolutional", *convolutional())


class TransformerBlock(nn.Module):
    """Tokens and their places, embedded; causal self-attention of four heads; a feed-forward part."""

    def __init__(self, vocabulary: int = 50, longest: int = 64, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(longest, width)
        self.before_attention = nn.LayerNorm(width)
        self.before_mlp = nn.RMSNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        batch, length = tokens.shape
        x = self.tokens(tokens) + self.places(torch.arange(length))
        heads = self.query_key_value(self.before_attention(x)).view(batch, length, 3, self.heads, -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4).unbind(0)
        attended = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.projection(attended.transpose(1, 2).flatten(2))
        return x + self.mlp(self.before_mlp(x))


class ConvolutionalNet(nn.Module):
    """Convolutions (strided, depthwise, transposed) with batch normalization, a shortcut, pooling, resizing, a softmax."""

    def __init__(self, channels: int = 16, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.BatchNorm2d(3),  # stays one; those behind a convolution go into its weights at the export
            nn.Conv2d(3, channels, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(channels),
            nn.ReLU6(),
        )
        self.depthwise = nn.Sequential(
            nn.Conv2d(channels, channels, 5, padding=2, groups=channels),
            nn.BatchNorm2d(channels),
            nn.Hardswish(),
            nn.Conv2d(channels, channels, 1),
            nn.BatchNorm2d(channels),
        )
        self.pool = nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True)
        self.up = nn.ConvTranspose2d(channels, channels, 4, stride=2, padding=1)
        self.head = nn.Linear(channels, classes)

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        x = self.stem(image)
        x = x + self.depthwise(x)
        fine = functional.interpolate(self.up(self.pool(x)), size=image.shape[2:], mode="bilinear", align_corners=False)
        return torch.softmax(self.head(x.mean((2, 3))), 1), torch.sigmoid(fine.amax(1, keepdim=True))


def transformer() -> tuple[nn.Module, Sequence[Tensor], dict[int, str], list[str]]:
    """The block, inputs of three shapes, the dynamic axes and the outputs' names."""
    given = [torch.randint(50, shape) for shape in ((2, 7), (1, 1), (3, 64))]
    return TransformerBlock(), given, {0: "batch", 1: "sequence"}, ["hidden"]


def convolutional() -> tuple[nn.Module, Sequence[Tensor], dict[int, str], list[str]]:
    """The net with the statistics of some batches, inputs of three shapes, the dynamic axes, the outputs' names."""
    net = ConvolutionalNet()
    with torch.no_grad():
        for _ in range(20):  # in training mode, batch normalization gathers the mean and the variance
            net(3 * torch.rand(8, 3, 32, 32) - 1)
    given = [torch.randn(shape) for shape in ((2, 3, 32, 32), (1, 3, 45, 38), (3, 3, 16, 64))]
    return net, given, {0: "batch", 2: "height", 3: "width"}, ["classes", "mask"]


def _both_opsets(
    name: str, module: nn.Module, given: Sequence[Tensor], dynamic: dict[int, str], outputs: list[str]
) -> Iterator[Exported]:
    module.eval()
    (argument,) = module.forward.__annotations__.keys() - {"return"}
    program = torch.onnx.export(
        module,
        (given[0],),
        input_names=[argument],
        output_names=outputs,
        dynamic_shapes=(dynamic,),
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    model = program.model_proto
    _expect_opset(model, OPSET)
    cases = []
    for tensor in given:
        with torch.no_grad():
            results = module(tensor)
        results = results if isinstance(results, tuple) else (results,)
        arrays = [np.asarray(r) for r in results]
        cases.append(({argument: np.asarray(tensor)}, dict(zip(outputs, arrays, strict=True))))
    yield Exported(name, model, cases)
    newest = onnx.defs.onnx_opset_version()
    converted = version_converter.convert_version(model, newest)
    _expect_opset(converted, newest)
    yield Exported(f"{name}_newest_opset", converted, cases)


def _expect_opset(model: onnx.ModelProto, version: int) -> None:
    found = {o.domain: o.version for o in model.opset_import}
    assert found == {"": version}, found
