# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on the OrtCpu preset."""

from backend_test.suite import plug_preset

globals().update(plug_preset("OrtCpu", __name__))
