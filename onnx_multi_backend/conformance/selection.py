# SPDX-License-Identifier: Apache-2.0
"""Which cases to run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from onnx_multi_backend.conformance.case_facts import DEFAULT_DOMAIN, CaseFacts
from onnx_multi_backend.errors import OptionError

_WORDS = re.compile(r"[()]|[^\s()]+")
_PARTS = (ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not)
_WORD = (ast.Subscript, ast.Name, ast.Load, ast.Constant)
_SYNTAX = ("and", "or", "not", "(", ")")


@dataclass(frozen=True)
class Selection:
    """Cases by several criteria, all of which must hold; one that is empty always does.

    Parameters
    ----------
    expression : str
        Words that a case's name must contain, whatever their case, with ``and``, ``or``, ``not`` and parentheses, as
        pytest's ``-k`` has it.
    domains, operators : sequence of str
        A node of the case's model must be of one of them. The default domain is ``ai.onnx``.
    kinds : sequence of str
        As `onnx_multi_backend.conformance.cases.KINDS` names them.
    """

    expression: str = ""
    domains: Sequence[str] = ()
    operators: Sequence[str] = ()
    kinds: Sequence[str] = ()

    def check(self) -> None:
        """Look at what needs no cases to be checked.

        Raises
        ------
        OptionError
            The expression is malformed.
        """
        _matcher(self.expression)

    def choose(self, cases: Mapping[str, CaseFacts]) -> list[str]:
        """Return the names of the cases that are meant.

        Raises
        ------
        OptionError
            The expression is malformed, no case has the domain or the operator, or no case is left.
        """
        domains = {domain or DEFAULT_DOMAIN for domain in self.domains}
        _check_known("domain", domains, {u.domain for facts in cases.values() for u in facts.operators})
        _check_known("operator", self.operators, {u.op_type for facts in cases.values() for u in facts.operators})
        matches = _matcher(self.expression)

        def has_operator(facts: CaseFacts) -> bool:
            return any(
                (not domains or use.domain in domains) and (not self.operators or use.op_type in self.operators)
                for use in facts.operators
            )

        def meant(name: str, facts: CaseFacts) -> bool:
            return (
                matches(name)
                and (not self.kinds or facts.kind in self.kinds)
                and (not (domains or self.operators) or has_operator(facts))
            )

        chosen = [name for name, facts in cases.items() if meant(name, facts)]
        if not chosen:
            raise OptionError(f"No case matches {self}.")
        return chosen

    def __str__(self) -> str:
        words = [f"-k {self.expression!r}"] if self.expression else []
        words += [f"domain {', '.join(self.domains)}"] if self.domains else []
        words += [f"operator {', '.join(self.operators)}"] if self.operators else []
        words += [f"kind {', '.join(self.kinds)}"] if self.kinds else []
        return " and ".join(words) or "anything"


def _check_known(what: str, wanted: Sequence[str] | set[str], known: set[str]) -> None:
    for word in wanted:
        if word not in known:
            near = get_close_matches(word, known, n=3, cutoff=0.5) or [k for k in known if k.lower() == word.lower()]
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise OptionError(f"No case has the {what} {word!r}.{hint}")


def _matcher(expression: str) -> Callable[[str], bool]:
    """Leave the grammar to Python: each word becomes a name, so that nothing of the user's text is evaluated."""
    tokens = _WORDS.findall(expression)
    if not tokens:
        return lambda name: True
    words = [token.lower() for token in tokens if token not in _SYNTAX]
    variables = iter(range(len(words)))
    source = " ".join(token if token in _SYNTAX else f"w[{next(variables)}]" for token in tokens)
    try:
        tree = ast.parse(source, mode="eval")
    except SyntaxError:
        tree = None
    # A word before a parenthesis is a call to Python, and empty parentheses are a tuple.
    if tree is None or not all(isinstance(part, _PARTS + _WORD) for part in ast.walk(tree)):
        raise OptionError(
            f"-k {expression!r} is not an expression: write words with 'and', 'or', 'not' and parentheses."
        )
    code = compile(tree, "<expression>", "eval")

    def matches(name: str) -> bool:
        return bool(eval(code, {"__builtins__": {}}, {"w": [word in name.lower() for word in words]}))

    return matches
