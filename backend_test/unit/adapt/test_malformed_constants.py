# SPDX-License-Identifier: Apache-2.0
"""Rules look at constants that have not as many elements, or axes, as their operator asks for, and leave such nodes alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from backend_test.unit import models
from onnx_multi_backend.adapt.rules.channel_means import takes_channel_means
from onnx_multi_backend.adapt.rules.cum_prod import cum_prod
from onnx_multi_backend.adapt.rules.expand_to_nothing import comes_to_nothing
from onnx_multi_backend.adapt.rules.fourier import fourier
from onnx_multi_backend.adapt.rules.integer_moves import in_halves
from onnx_multi_backend.adapt.rules.range_end import may_run_backwards, range_end
from onnx_multi_backend.adapt.rules.resize import resize
from onnx_multi_backend.adapt.site import Body, Site


def _site(
    op_type: str, shape: list[int], constants: list[Any], elem_type: int = models.FLOAT, **attributes: Any
) -> Site:
    """An operator of one input and constants; None: none is given."""
    known = {f"c{i}": value for i, value in enumerate(constants) if value is not None}
    names = [f"c{i}" if f"c{i}" in known else "" for i in range(len(constants))]
    node = models.node(op_type, ["x", *names], ["y"], **attributes)
    given = [models.tensor("x", shape, elem_type)]
    return Site(
        models.model(
            [node],
            given,
            [models.tensor("y", None, elem_type)],
            initializers=known,
            opsets={"": 26 if op_type == "CumProd" else 20},
        )
    )


def _moved(site: Site) -> list[str]:
    return list(filter(None, [in_halves(Body(site), site, TensorProto.INT32)]))


NONE, SIZES, SCALES = np.zeros(0, np.int64), np.array([[1, 1, 3, 3]]), np.float32([[1, 1, 2, 2]])
FORMS: dict[str, tuple[Callable[[Site], Any], Site]] = {
    "CumProd": (cum_prod, _site("CumProd", [4], [NONE])),
    "DFT": (fourier, _site("DFT", [1, 4, 2], [None, NONE])),
    "Expand to a table": (comes_to_nothing, _site("Expand", [3, 1], [np.array([[3, 2], [0, 1]])])),
    "Range of a start": (range_end, _site("Range", [], [np.array(5), NONE], models.INT64)),
    "ReduceMean along a table": (takes_channel_means, _site("ReduceMean", [2, 3, 4, 4], [np.array([[0, 2], [3, 3]])])),
    "Resize to a row": (resize, _site("Resize", [1, 1, 4, 4], [None, None, SIZES], mode="linear")),
    "Resize by a row": (_moved, _site("Resize", [1, 1, 4, 4], [None, SCALES], TensorProto.INT32, mode="linear")),
    "Resize by a number": (
        _moved,
        _site("Resize", [1, 1, 4, 4], [None, np.float32(1)], TensorProto.INT32, mode="linear"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_it_is_left_alone(form: str) -> None:
    rule, site = FORMS[form]
    found = rule(site)
    assert not (found if isinstance(found, bool) else list(found))


def test_a_range_of_such_is_not_taken_for_one_that_runs_backwards() -> None:
    node = models.node("Range", ["a", "b", "c"], ["y"])
    known = {"a": np.array([0, 5]), "b": np.array(3), "c": np.array(1)}
    assert not may_run_backwards(
        Site(models.model([node], [], [models.tensor("y", None, models.INT64)], initializers=known))
    )
