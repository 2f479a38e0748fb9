# SPDX-License-Identifier: Apache-2.0
"""The plots of a report, as SVG that stands in a page; its style sheet gives the colours."""
