# SPDX-License-Identifier: Apache-2.0
"""Types and shapes, inferred in bounded time and memory."""
