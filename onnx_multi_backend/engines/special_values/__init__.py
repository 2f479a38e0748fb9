# SPDX-License-Identifier: Apache-2.0
"""NaN, infinities and large numbers where an engine may lose them: what is told of them."""
