# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtOpenvino preset with everything allowed to fall back to the CPU EP."""

from backend_test.suite import plug_preset

globals().update(plug_preset("OrtOpenvino", __name__, fallback="full"))
