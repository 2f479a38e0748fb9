# SPDX-License-Identifier: Apache-2.0
"""What OpenVINO gets wrong of several nodes together, on both engines."""
