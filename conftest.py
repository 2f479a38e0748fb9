# SPDX-License-Identifier: Apache-2.0
"""Labels, baselines and ONNX's coverage report at the end of every test run."""

pytest_plugins = ["onnx_multi_backend.conformance.pytest_plugin"]
