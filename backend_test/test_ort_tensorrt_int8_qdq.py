# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtTensorrtInt8QDQ preset."""

from backend_test.suite import plug_preset

globals().update(plug_preset("OrtTensorrtInt8QDQ", __name__, devices=["CUDA"]))
