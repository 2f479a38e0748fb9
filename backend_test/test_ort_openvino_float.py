# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtOpenvinoFloat preset."""

from backend_test.suite import plug_preset

#: The preset that hands the engine the same: a sample of the cases is enough.
SAME_AS = "OrtOpenvino"

globals().update(plug_preset("OrtOpenvinoFloat", __name__))
