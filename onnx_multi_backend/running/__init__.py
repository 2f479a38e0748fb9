# SPDX-License-Identifier: Apache-2.0
"""A prepared model: inputs in, results out, buffers, streams."""
