# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest, with which ONNX generates the cases of one operator alone: all of them take seconds."""

from backend_test.unit.conformance.toys import generate_only

generate_only("abs")
