# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's own operators."""

#: Their domain.
DOMAIN = "com.microsoft"
