# SPDX-License-Identifier: Apache-2.0
"""Versions are compared as packaging compares them, without importing it for the usual ones."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from onnx_multi_backend.host.versions import fits

_NUMBERS = st.lists(st.integers(0, 40), min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts)))
_CLAUSE = st.tuples(st.sampled_from(("<", ">=", "< ", ">= ")), _NUMBERS).map("".join)


@given(_NUMBERS, st.lists(_CLAUSE, min_size=1, max_size=3).map(",".join))
def test_numbers_compare_as_in_packaging(version: str, wanted: str) -> None:
    assert fits(version, wanted) == SpecifierSet(wanted).contains(version, prereleases=True)


@pytest.mark.parametrize("version", ["1.31", "1.31.0", "1.31.1", "1.32.0.dev20260101", "1.32rc1", "1.31.1+cpu"])
@pytest.mark.parametrize("wanted", ["==1.31.*", "<1.32", ">=1.32", "~=1.31", ">1.31,!=1.31.1", "<=1.31"])
def test_other_forms_are_left_to_packaging(version: str, wanted: str) -> None:
    assert fits(version, wanted) == SpecifierSet(wanted).contains(version, prereleases=True)


def test_packaging_is_not_imported_for_the_usual_form() -> None:
    code = (
        "import sys; from onnx_multi_backend.host.versions import fits; fits('1.32.0', '>=1.24,<2'); "
        "assert 'packaging.specifiers' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
