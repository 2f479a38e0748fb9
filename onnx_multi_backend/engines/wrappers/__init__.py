# SPDX-License-Identifier: Apache-2.0
"""Sessions around another session."""
