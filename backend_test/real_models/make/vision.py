# SPDX-License-Identifier: Apache-2.0
"""Torchvision's nets, of random weights."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from backend_test.real_models.make import torchvision_alone  # noqa: F401 - before torchvision
from backend_test.real_models.make.saving import export

from torchvision import models  # isort: skip
from torchvision.models import segmentation  # isort: skip

_BATCH = {"image": {0: "batch"}}


class Segments(nn.Module):
    """A segmentation net's first output."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, image: Tensor) -> Tensor:
        found: Tensor = self.net(image)["out"]
        return found


def make(root: Path) -> None:
    torch.manual_seed(0)
    image = torch.rand(1, 3, 224, 224)
    for name in ("resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "efficientnet_b0", "regnet_y_400mf", "swin_t"):
        export(root, f"torchvision-{name}", getattr(models, name)(), {"image": image}, ["classes"], _BATCH)
    for name in ("squeezenet1_1", "mnasnet0_5", "densenet121"):  # as most models on the web are: the older exporter's
        net = getattr(models, name)()
        export(root, f"torchvision-{name}-torchscript", net, {"image": image}, ["classes"], _BATCH, dynamo=False)
    vit = models.VisionTransformer(64, 16, 4, 4, 128, 256)
    export(root, "torchvision-vit-small", vit, {"image": torch.rand(2, 3, 64, 64)}, ["classes"], _BATCH)
    lraspp = Segments(segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None))
    export(root, "torchvision-lraspp", lraspp, {"image": torch.rand(1, 3, 128, 160)}, ["classes"], _BATCH)
