# SPDX-License-Identifier: Apache-2.0
"""What the elements of a model's values lie between, and what of that an engine with narrower types computes."""
