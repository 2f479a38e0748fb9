# SPDX-License-Identifier: Apache-2.0
"""Taking times, and what can be said from them: for the product and for the benchmarks alike."""
