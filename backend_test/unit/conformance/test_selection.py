# SPDX-License-Identifier: Apache-2.0
"""Which cases are meant."""

from __future__ import annotations

import pytest

from onnx_multi_backend.conformance import CaseFacts, OperatorUse, Selection
from onnx_multi_backend.errors import OptionError


def _facts(kind: str, *operators: tuple[str, str]) -> CaseFacts:
    return CaseFacts(kind, "graph", tuple(OperatorUse(*o, 1, True, {}, ()) for o in operators))


CASES = {
    "test_conv_pad": _facts("node", ("ai.onnx", "Conv"), ("ai.onnx", "Pad")),
    "test_conv_transpose": _facts("node", ("ai.onnx", "ConvTranspose")),
    "test_Linear": _facts("pytorch-converted", ("ai.onnx", "Gemm")),
    "test_binarizer": _facts("node", ("ai.onnx.ml", "Binarizer")),
    "test_pad_orand": _facts("simple", ("ai.onnx", "Pad")),
}


def test_a_model_without_nodes_is_left_out_only_where_an_operator_is_asked_for() -> None:
    cases = {"test_empty": _facts("node"), **CASES}
    assert Selection().choose(cases) == list(cases)
    assert "test_empty" not in Selection(domains=["ai.onnx"]).choose(cases)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("", list(CASES)),
        ("conv", ["test_conv_pad", "test_conv_transpose"]),
        ("conv and not transpose", ["test_conv_pad"]),
        ("LINEAR", ["test_Linear"]),
        ("(pad or linear) and not conv", ["test_Linear", "test_pad_orand"]),
        ("orand", ["test_pad_orand"]),
        ("not(conv)and not binarizer", ["test_Linear", "test_pad_orand"]),
    ],
)
def test_expressions_are_pytests(expression: str, names: list[str]) -> None:
    assert Selection(expression).choose(CASES) == names


def test_criteria_must_all_hold_and_the_values_of_one_are_alternatives() -> None:
    assert Selection(operators=["Pad"]).choose(CASES) == ["test_conv_pad", "test_pad_orand"]
    assert Selection(operators=["Pad"], kinds=["node"]).choose(CASES) == ["test_conv_pad"]
    assert Selection(operators=["Gemm", "Binarizer"]).choose(CASES) == ["test_Linear", "test_binarizer"]
    assert Selection(domains=["ai.onnx.ml"]).choose(CASES) == ["test_binarizer"]
    assert Selection(domains=[""]).choose(CASES) == [n for n in CASES if n != "test_binarizer"]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        (Selection("conv and"), "is not an expression"),
        (Selection("conv pad"), "is not an expression"),
        (Selection("conv (pad)"), "is not an expression"),
        (Selection("conv ()"), "is not an expression"),
        (Selection("()"), "is not an expression"),
        (Selection("conv and ()"), "is not an expression"),
        (Selection("nothing"), "No case matches -k 'nothing'"),
        (Selection(operators=["conv"]), "No case has the operator 'conv'. Did you mean Conv"),
        (Selection(domains=["ai.onnx.xl"]), "No case has the domain 'ai.onnx.xl'. Did you mean ai.onnx"),
        (Selection("linear", operators=["Pad"]), "No case matches -k 'linear' and operator Pad."),
    ],
)
def test_what_selects_nothing_is_an_error(selection: Selection, message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("(", r"\(")):
        selection.choose(CASES)


def test_a_malformed_expression_is_found_without_cases() -> None:
    Selection("conv and (pad or not relu)").check()
    with pytest.raises(OptionError, match="is not an expression"):
        Selection("relu (abs)").check()


def test_nothing_of_an_expression_is_evaluated() -> None:
    with pytest.raises(OptionError):
        Selection("__import__('os').abort()").choose(CASES)
