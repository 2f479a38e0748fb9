# SPDX-License-Identifier: Apache-2.0
"""What this package costs, measured against the engines' own APIs."""
