# SPDX-License-Identifier: Apache-2.0
"""Writes real models of random or quickly trained weights, quantized ones, and what ONNX Runtime's own tools make of them.

``python -m backend_test.real_models.make FOLDER`` needs the frameworks of the dependency group ``real-models``.
"""
