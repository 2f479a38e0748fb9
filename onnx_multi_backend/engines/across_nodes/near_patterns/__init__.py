# SPDX-License-Identifier: Apache-2.0
"""Graphs that are nearly what OpenVINO makes one operator of, or moves a node in: each is kept apart where it is not that."""
