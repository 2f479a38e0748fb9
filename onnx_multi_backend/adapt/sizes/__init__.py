# SPDX-License-Identifier: Apache-2.0
"""The sizes of values, as far as a model's inputs and nodes tell."""
