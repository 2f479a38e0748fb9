# SPDX-License-Identifier: Apache-2.0
"""Lets torchvision be imported beside a PyTorch for the CPU.

The index's torchvision is built for PyTorch with CUDA; beside another one its own operators do not load, and it cannot be imported
unless two of them are declared. The nets that are exported need none of them.
"""

import torch

try:
    import torchvision  # noqa: F401
except RuntimeError:
    _declared = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _declared.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
