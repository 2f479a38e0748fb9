# SPDX-License-Identifier: Apache-2.0
"""Text, tables and blocks of GitHub's Markdown, with nothing in a text taken for markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Entities, not backslashes: a backslash before a pipe means different things to different readers of tables.
_MARKUP = {ord(c): f"&#{ord(c)};" for c in "|`*[]\\~$"} | {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}
# Between two letters or digits it is not markup, and names stay legible in the source.
_UNDERSCORE = re.compile(r"(?<![^\W_])_|_(?![^\W_])")
_PLAIN = re.compile(r"[\w.:/+ -]+")
# Control characters, which no table may have, and lone surrogates, which no file may have.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def plain(text: str, limit: int = 200) -> str:
    """Return a text in one line, at most `limit` characters of it, to be read as it stands."""
    line = _UNPRINTABLE.sub("", " ".join(text.split()))
    line = line if len(line) <= limit else line[: limit - 1] + "…"
    return _UNDERSCORE.sub("&#95;", line.translate(_MARKUP))


def code(text: str) -> str:
    """Return a name as code; one that is not a plain word cannot be, and is returned as text."""
    return f"`{text}`" if _PLAIN.fullmatch(text) and text == text.strip() else plain(text)


def block(lines: Iterable[str]) -> str:
    """Return lines as a block of code, whatever they hold."""
    text = "\n".join(lines)
    fence = "`" * max([3, *(len(run) + 1 for run in re.findall("`+", text))])
    return f"{fence}text\n{text}\n{fence}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[str] = ()) -> str:
    """Return a table of cells that are Markdown already; the columns named in `numbers` are aligned to the right."""
    rules = ["---:" if name in numbers else "---" for name in header]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rules, *rows))


def details(summary: str, content: str) -> str:
    """Return content that is folded away under a summary."""
    return f"<details>\n<summary>{summary}</summary>\n\n{content}\n\n</details>"
