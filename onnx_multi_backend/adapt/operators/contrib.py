# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's own operators."""

#: Their domain.
DOMAIN = "com.microsoft"
#: The accuracy level of MatMulNBits that multiplies in int8.
IN_BYTES = 4
