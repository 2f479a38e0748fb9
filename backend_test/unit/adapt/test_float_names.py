# SPDX-License-Identifier: Apache-2.0
"""Which values hold floating-point numbers: looked up one by one, it is what a walk through the graph tells."""

from __future__ import annotations

import random

import onnx
import onnx.parser
import pytest
from onnx import defs

from backend_test.search.graphs import Plan, random_chain, random_graph
from backend_test.unit.counting import counted
from onnx_multi_backend.adapt.float_names import FloatSearch, first_output, float_names
from onnx_multi_backend.models.contents import Contents


def test_values_of_random_graphs() -> None:
    tried = 0
    for seed in range(150):
        rng = random.Random(seed)
        model = (random_chain(rng) if seed % 2 else random_graph(rng, Plan())).model
        if model.functions or Contents(model).holding:
            continue
        search, walked = FloatSearch(model.graph), float_names(model.graph)
        names = [name for node in model.graph.node for name in (*node.input, *node.output) if name]
        rng.shuffle(names)
        assert {name for name in names if search(name)} == walked & set(names)
        tried += 1
    assert tried > 50


@pytest.mark.parametrize(("kind", "expected"), [("float", True), ("int64", False)])
def test_each_value_of_a_long_row_is_looked_at_once(kind: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = " ".join(f"v{i + 1} = Relu (v{i})" for i in range(3000))
    made = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g ({kind}[2] v0) => ({kind}[2] v3000) {{ {nodes} }}'
    )
    looked = counted(monkeypatch, FloatSearch, "_like")
    search = FloatSearch(made.graph)
    assert [search(f"v{i}") for i in (3000, 2000, 1000, 1)] == [expected] * 4
    assert len(looked) <= 3001


def test_what_makes_floats_does_so_in_every_opset() -> None:
    schemas = [s for s in defs.get_all_schemas_with_history() if not s.domain and s.outputs]
    for schema in schemas:
        if first_output(schema.name).floats:
            kind = schema.outputs[0].type_str
            types = next((c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == kind), [kind])
            assert not any("int" in name or "bool" in name for name in types), (schema.name, schema.since_version)
