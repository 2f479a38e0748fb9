# SPDX-License-Identifier: Apache-2.0
"""What is known of a model's inputs before it runs: their sizes, or their values."""

from __future__ import annotations

from onnx import numpy_helper

from backend_test.search.forms.case import Case, copied, is_array, tensor


def open_sizes(case: Case) -> Case | None:
    """All sizes are known only when it runs."""
    made, count = copied(case.model), 0
    for value in made.graph.input:
        held = tensor(value.type)
        for dim in held.shape.dim if held is not None else ():
            if dim.HasField("dim_value"):
                dim.dim_param = f"open{count}"
                count += 1
    for value in made.graph.output:
        held = tensor(value.type)
        for dim in held.shape.dim if held is not None else ():
            dim.Clear()
    return case._replace(model=made) if count else None


def of_constants(case: Case) -> Case | None:
    """Its inputs are constants, all but the first."""
    return _stored(case, kept=1)


def of_constants_alone(case: Case) -> Case | None:
    """All of its inputs are constants."""
    return _stored(case, kept=0)


def _stored(case: Case, *, kept: int) -> Case | None:
    if not all(map(is_array, case.feeds.values())):
        return None
    made = copied(case.model)
    names = [value.name for value in made.graph.input if value.name in case.feeds][kept:]
    inputs = [value for value in made.graph.input if value.name not in names]
    del made.graph.input[:]
    made.graph.input.extend(inputs)
    made.graph.initializer.extend(numpy_helper.from_array(case.feeds[name], name) for name in names)
    feeds = {name: array for name, array in case.feeds.items() if name not in names}
    return Case(made, feeds, case.results) if names else None
