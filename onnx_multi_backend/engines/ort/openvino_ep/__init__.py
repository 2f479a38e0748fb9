# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's execution provider: what is known of it, and what a model needs before it gets it."""
