# SPDX-License-Identifier: Apache-2.0
"""Random graphs: valid models of any operator, with inputs for two different runs."""

from __future__ import annotations

from backend_test.search.graphs.altered import random_case
from backend_test.search.graphs.bodies import random_bodies
from backend_test.search.graphs.chains import random_chain
from backend_test.search.graphs.contrib import random_contrib
from backend_test.search.graphs.generate import Made, Plan, random_graph
from backend_test.search.graphs.mutated import random_pattern

__all__ = [
    "Made",
    "Plan",
    "random_bodies",
    "random_case",
    "random_chain",
    "random_contrib",
    "random_graph",
    "random_pattern",
]
