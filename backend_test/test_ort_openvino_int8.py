# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtOpenvinoInt8 preset."""

from backend_test.suite import plug_preset

globals().update(plug_preset("OrtOpenvinoInt8", __name__))
