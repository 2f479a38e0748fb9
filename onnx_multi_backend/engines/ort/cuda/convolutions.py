# SPDX-License-Identifier: Apache-2.0
"""Runs in which a convolution of CUDA failed.

The kernel keeps the sizes of its input before it looks at them, and takes a second input of these sizes for one that it is ready
for: it reads beyond it, or ends the process. So the session is built anew before its next run. Source: measured with 1.31.1.
"""

from __future__ import annotations

import re

#: What ONNX Runtime says of an operator that failed.
_CONVOLUTION = re.compile(r"running \w*Conv\w* node")


def spoils(error: Exception) -> bool:
    """Whether an error leaves a convolution with sizes that it refused."""
    return _CONVOLUTION.search(str(error)) is not None
