# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtTensorrt preset."""

from backend_test.suite import plug_preset

globals().update(plug_preset("OrtTensorrt", __name__, devices=["CUDA"]))
