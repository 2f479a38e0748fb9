# SPDX-License-Identifier: Apache-2.0
"""ONNX's official suite on any backend: ``pytest --pyargs onnx_multi_backend.conformance --onnx-backend PATH``."""

from onnx_multi_backend.conformance.pytest_suite import plug_chosen

globals().update(plug_chosen(__name__))
