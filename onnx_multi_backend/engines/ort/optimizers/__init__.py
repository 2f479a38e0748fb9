# SPDX-License-Identifier: Apache-2.0
"""Optimizers of ONNX Runtime that must not see a model (found by measuring): they compute something else, or end the process."""
