# SPDX-License-Identifier: Apache-2.0
"""The command ``onnx-multi-backend``: it parses, calls the package, and prints."""

from onnx_multi_backend.cli.entry import main

__all__ = ["main"]
