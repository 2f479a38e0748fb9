# SPDX-License-Identifier: Apache-2.0
"""The presets, one small file a family: what each sets, and nothing else."""
