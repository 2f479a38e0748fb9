# SPDX-License-Identifier: Apache-2.0
"""How nodes of a read model are put right, one file for each cause; `engines/openvino/mending.py` has the table."""
