# SPDX-License-Identifier: Apache-2.0
"""Passes over a whole model; `pipeline` has their order."""
