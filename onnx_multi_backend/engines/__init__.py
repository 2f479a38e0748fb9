# SPDX-License-Identifier: Apache-2.0
"""The engines. Only the packages in here import ONNX Runtime or OpenVINO, and only when one is used."""
