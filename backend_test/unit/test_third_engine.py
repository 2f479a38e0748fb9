# SPDX-License-Identifier: Apache-2.0
"""An engine from outside: the entry-point group alone adds it, and it gets all that the package's own engines have."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.test_registry import distribution
from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.conformance import protocol_suite

pytest.importorskip("tract", reason="tract is not installed: pip install tract")
from examples import tract_engine
from examples.tract_engine import TractBackend, TractTarget

TestProtocol = protocol_suite(TractBackend)

X = np.float32([[1, -2, 3]])


def test_it_is_short() -> None:
    assert len(Path(tract_engine.__file__).read_text().splitlines()) <= 150


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder on the path as pip leaves it after it has installed the example."""
    shutil.copy(tract_engine.__file__, tmp_path)
    return distribution(tmp_path, "tract-engine", "1.0", "Tract = tract_engine:TractBackend\n")


def test_the_entry_point_makes_it_a_preset(fresh: Callable[..., str], installed: Path) -> None:
    told = fresh(
        f"sys.path.insert(0, {str(installed)!r})\n"
        "import numpy as np\n"
        "from backend_test.unit import models\n"
        "import onnx_multi_backend as omb\n"
        "preset = omb.presets()['Tract']\n"
        "print(preset.availability())\n"
        "print(preset.prepare(models.relu()).run(np.float32([[1, -2, 3]]))[0].tolist())\n"
    )
    assert "usable=True, devices=('CPU',), engine='tract " in told
    assert "[[1.0, 0.0, 3.0]]" in told


def test_the_command_line_labels_its_cases(fresh: Callable[..., str], installed: Path, tmp_path: Path) -> None:
    names = "test_relu_cpu or test_det_2d_cpu or test_string_concat_cpu"
    out = tmp_path / "report"
    fresh(
        f"sys.path.insert(0, {str(installed)!r})\n"
        "from backend_test import cases_once\n"
        "from onnx_multi_backend.cli.entry import main\n"
        "cases_once.hand_on()\n"
        f"sys.argv[1:] = ['conformance', '--preset', 'Tract', '--jobs', '1', '-k', {names!r}, '--out', {str(out)!r}]\n"
        "main()\n"
    )
    labels = {case["name"]: case["label"] for case in json.loads((out / "report.json").read_text())["cases"]}
    assert labels == {
        "test_ReLU_cpu": "native",
        "test_relu_cpu": "native",
        "test_det_2d_cpu": "adapted",
        "test_string_concat_cpu": "unsupported",
    }


def test_what_it_lacks_is_rewritten() -> None:
    rep = TractBackend(models.one_node("Det", [models.tensor("x", (2, 2))], [models.tensor("y", ())]))
    assert [change.pass_name for change in rep.adaptations] == ["det"]
    assert rep.run(np.float32([[3, 1], [4, 2]]))[0] == pytest.approx(2)


def test_a_narrow_type_is_carried_in_a_wider_one() -> None:
    made = models.one_node(
        "Identity",
        [models.tensor("x", ["N"], TensorProto.FLOAT8E4M3FN)],
        [models.tensor("y", ["N"], TensorProto.FLOAT8E4M3FN)],
    )
    rep = TractBackend(made)
    assert rep.adaptations
    values = np.float32([1, -2, 448]).astype(rep.get_inputs()[0].dtype)
    result = rep.run(values)[0]
    assert result.dtype == values.dtype
    np.testing.assert_array_equal(result.astype(np.float32), values.astype(np.float32))


def test_what_nothing_can_rewrite_is_refused_by_name() -> None:
    made = models.one_node(
        "StringConcat",
        [models.tensor("a", elem_type=models.STRING), models.tensor("b", elem_type=models.STRING)],
        [models.tensor("y", elem_type=models.STRING)],
    )
    with pytest.raises(omb.UnsupportedModelError, match="StringConcat") as raised:
        TractBackend(made)
    assert raised.value.operators == ("StringConcat",)


def test_bound_buffers_streams_and_another_process_come_with_it() -> None:
    rep = TractBackend(models.relu((2, 3)))
    x = np.float32([[1, -2, 3], [-4, 5, -6]])
    bound = rep.bind(x)
    x *= -1
    bound.run()
    np.testing.assert_array_equal(bound.outputs["y"], np.maximum(x, 0))
    assert [r[0].tolist() for r in rep.run_many([x, -x])] == [np.maximum(x, 0).tolist(), np.maximum(-x, 0).tolist()]
    with TractBackend(models.relu(), isolate=True) as elsewhere:
        np.testing.assert_array_equal(elsewhere.run(X)[0], np.maximum(X, 0))
    with pytest.raises(omb.OptionError, match="execution providers"):
        rep.get_providers()


def test_a_default_that_is_overridden_is_refused_not_ignored() -> None:
    made = models.one_node("Add", [models.tensor("x", (2,)), models.tensor("w", (2,))], [models.tensor("y", (2,))])
    made.graph.initializer.append(numpy_helper.from_array(np.float32([10, 10]), "w"))
    rep = TractBackend(made)
    x = np.float32([1, 2])
    np.testing.assert_array_equal(rep.run({"x": x})[0], x + 10)
    with pytest.raises(omb.UnsupportedModelError, match="default: w"):
        rep.run({"x": x, "w": x})


def test_a_form_that_an_engine_names_wrong_is_rewritten_or_refused() -> None:
    """`find_defect` alone is enough to say so."""

    class Careful(TractTarget):
        def find_defect(self, site: Site, *, written: bool = False) -> Defect | None:
            return Defect("it is off by one", wrong=True) if site.op_type in ("Sin", "HardSwish") else None

    class CarefulBackend(TractBackend):
        @classmethod
        def make_target(cls, *args: Any) -> TractTarget:
            return Careful(cls.name)

    rep = CarefulBackend(models.one_node("HardSwish", [models.tensor("x")], [models.tensor("y")]))
    assert "HardSwish" not in {node.op_type for node in rep.placement()}
    np.testing.assert_allclose(rep.run(X)[0], X * np.clip(X / 6 + 0.5, 0, 1), rtol=1e-6)
    assert not CarefulBackend(models.relu()).adaptations
    with pytest.raises(omb.UnsupportedModelError, match="does not compute Sin correctly.*off by one"):
        CarefulBackend(models.one_node("Sin", [models.tensor("x")], [models.tensor("y")]))


def test_targets_that_differ_anywhere_are_asked_apart() -> None:
    @dataclass(frozen=True)
    class WithTable(TractTarget):
        table: Any = None

    big = np.zeros(5000)
    other = big.copy()
    other[2500] = 1
    assert repr(WithTable("T", big)) == repr(WithTable("T", other))
    assert WithTable("T", big).identity != WithTable("T", other).identity
    assert WithTable("T", 3).identity == WithTable("T", 3).identity != WithTable("T", 4).identity
