# SPDX-License-Identifier: Apache-2.0
"""The table of recipes: how a valid node of each operator is drawn."""

from __future__ import annotations

from collections.abc import Callable

from backend_test.search.graphs.builder import Value
from backend_test.search.graphs.draft import Draft

Recipe = Callable[[Draft], list[Value]]

RECIPES: dict[str, Recipe] = {}


def recipe(*operators: str) -> Callable[[Recipe], Recipe]:
    """Enter a recipe for operators into the table."""

    def enter(made: Recipe) -> Recipe:
        for name in operators:
            assert name not in RECIPES, name
            RECIPES[name] = made
        return made

    return enter
