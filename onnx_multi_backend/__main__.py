# SPDX-License-Identifier: Apache-2.0
"""``python -m onnx_multi_backend`` is the command ``onnx-multi-backend``."""

from onnx_multi_backend.cli import main

main()
