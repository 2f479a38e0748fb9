# SPDX-License-Identifier: Apache-2.0
"""A module that ends whoever imports it."""

import sys

sys.exit(5)
