# SPDX-License-Identifier: Apache-2.0
"""Imported by the process that conformance workers are forked from, before ONNX's cases are needed there."""

from backend_test import cases_once

cases_once.keep()
