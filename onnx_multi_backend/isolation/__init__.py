# SPDX-License-Identifier: Apache-2.0
"""A model in a process of its own: an engine that dies takes that process with it, and not the host."""
