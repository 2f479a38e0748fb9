# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO gets wrong of quantized nodes and their neighbours, a file for each cause."""
