# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtOpenvinoFloat preset."""

from backend_test.suite import plug_preset

globals().update(plug_preset("OrtOpenvinoFloat", __name__))
