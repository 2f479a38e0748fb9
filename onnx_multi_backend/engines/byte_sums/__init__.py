# SPDX-License-Identifier: Apache-2.0
"""Sums of products of bytes, which saturate on some processors."""
