# SPDX-License-Identifier: Apache-2.0
"""One model's way to sessions of an engine, adapted and cached."""
