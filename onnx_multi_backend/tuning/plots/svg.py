# SPDX-License-Identifier: Apache-2.0
"""Elements of SVG; what they show is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape


def element(name: str, *children: str, **attributes: str | float) -> Markup:
    """An element. ``class_`` is the attribute ``class``, and ``stroke_width`` is ``stroke-width``."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"' for key, value in attributes.items()
    )
    inner = "".join(map(escape, children))
    return Markup(f"<{name}{words}>{inner}</{name}>" if children else f"<{name}{words}/>")


def _value(value: str | float) -> str:
    return value if isinstance(value, str) else f"{round(value, 2):g}" if abs(value) < 1e5 else f"{value:.0f}"


def text(words: str, x: float, y: float, *, anchor: str = "start", class_: str = "") -> Markup:
    """A line of text."""
    return element("text", words, x=x, y=y, text_anchor=anchor, class_=class_ or "label")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def picture(
    parts: Sequence[Markup], *, width: float, height: float, id: str, title: str, description: str, class_: str
) -> Markup:
    """A whole picture, with what it is called and what it shows."""
    return element(
        "svg",
        element("title", title, id=f"{id}-title"),
        element("desc", description, id=f"{id}-desc"),
        *parts,
        class_=f"plot {class_}",
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        aria_labelledby=f"{id}-title",
        aria_describedby=f"{id}-desc",
    )


def cut(words: str, most: int) -> str:
    """A name in so many characters at most."""
    return words if len(words) <= most else words[: most - 1] + "…"
