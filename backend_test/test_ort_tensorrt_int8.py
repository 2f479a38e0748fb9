# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtTensorrtInt8 preset, which needs a calibration table that the suite has not."""

from backend_test.suite import plug_preset

globals().update(
    plug_preset(
        "OrtTensorrtInt8", __name__, devices=["CUDA"], skip="each case would need a calibration table of its own"
    )
)
