# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtOpenvinoInt8 preset."""

from backend_test.suite import plug_preset

#: The preset that hands the engine the same: a sample of the cases is enough.
SAME_AS = "OrtOpenvino"

globals().update(plug_preset("OrtOpenvinoInt8", __name__))
