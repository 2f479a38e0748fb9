# SPDX-License-Identifier: Apache-2.0
"""One ``when``, for expectations, defects and exports alike."""

from __future__ import annotations

import sys

import onnx
import pytest

from onnx_multi_backend.host.applies import applies, describe, fault
from onnx_multi_backend.host.processor import Processor, current

XEON = Processor("GenuineIntel", 6, 143, "Xeon", frozenset({"sse4_2", "avx2", "avx512f", "amx_bf16"}))
ZEN = Processor("AuthenticAMD", 23, 1, "EPYC", frozenset({"sse4_2", "avx2"}))


@pytest.mark.parametrize(
    ("when", "on_xeon", "on_zen"),
    [
        ({}, True, True),
        ({"vendor": "GenuineIntel"}, True, False),
        ({"instruction_set": "avx2"}, True, True),
        ({"instruction_set": "avx512f"}, True, False),
        ({"instruction_set": "avx2,!avx512f"}, False, True),
        ({"instruction_set": " avx512f , amx_bf16 "}, True, False),
        ({"instruction_set": "!avx2"}, False, False),
        ({"instruction_set": "avx512f", "vendor": "AuthenticAMD"}, False, False),
        ({"platform": sys.platform, "vendor": "AuthenticAMD"}, False, True),
        ({"platform": "plan9"}, False, False),
        ({"onnx": f"=={onnx.__version__}"}, True, True),
        ({"onnx": "<1", "vendor": "GenuineIntel"}, False, False),
        ({"no-such-package": ">=0"}, False, False),
    ],
)
def test_all_of_it_must_hold(when: dict[str, str], on_xeon: bool, on_zen: bool) -> None:
    assert fault(when) == ""
    assert applies(when, on=XEON) is on_xeon
    assert applies(when, on=ZEN) is on_zen


def test_it_is_about_this_host_unless_another_is_named() -> None:
    assert applies({"vendor": current().vendor})
    assert not applies({"vendor": current().vendor + " not"})


@pytest.mark.parametrize(
    ("when", "words"),
    [
        ("linux", "a table of strings"),
        ({"platform": 1}, "a table of strings"),
        ({"vendor": " "}, "a table of strings"),
        ({"onnx": "1.23"}, "onnx = '1.23' is not a version specifier"),
        ({"instruction_set": "AVX-512"}, "instruction_set = 'AVX-512' has 'AVX-512'; known are sse4_1, sse4_2, avx,"),
        ({"instruction_set": "avx2,!avx512vnni"}, "has 'avx512vnni'"),
        ({"instruction_set": "avx2,,avx"}, "has ''"),
    ],
)
def test_faults_are_said(when: object, words: str) -> None:
    assert words in fault(when)


def test_it_can_be_told_in_one_line() -> None:
    assert (
        describe({"openvino": ">=2026.4", "instruction_set": "avx512f"}) == "openvino >=2026.4, instruction_set avx512f"
    )
    assert describe({}) == "everywhere"
