# SPDX-License-Identifier: Apache-2.0
"""What rules and tables of defects both know of some operators."""
