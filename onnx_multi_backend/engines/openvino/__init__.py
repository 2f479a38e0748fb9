# SPDX-License-Identifier: Apache-2.0
"""OpenVINO without ONNX Runtime."""
