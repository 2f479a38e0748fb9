# SPDX-License-Identifier: Apache-2.0
"""One report of a run, written in every form that somebody reads: all of them are made from ``report.json`` alone."""
