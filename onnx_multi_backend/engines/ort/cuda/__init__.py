# SPDX-License-Identifier: Apache-2.0
"""The CUDA execution provider: what is known of it, and its graphs."""
