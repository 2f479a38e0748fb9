# SPDX-License-Identifier: Apache-2.0
"""Rules: operators of ai.onnx.ml, as scikit-learn's converters write them, on tensors."""
