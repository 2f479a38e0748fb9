# SPDX-License-Identifier: Apache-2.0
"""Loading a model: reading it, checking it, walking it; its tensors and the files of its weights."""
