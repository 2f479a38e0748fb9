# SPDX-License-Identifier: Apache-2.0
"""What this computer has: devices, the processor, the versions of packages."""
