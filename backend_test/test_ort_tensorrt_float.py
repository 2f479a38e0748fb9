# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtTensorrtFloat preset."""

from backend_test.suite import plug_preset

globals().update(plug_preset("OrtTensorrtFloat", __name__, devices=["CUDA"]))
