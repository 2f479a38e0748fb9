# SPDX-License-Identifier: Apache-2.0
"""What all pages of the package look like: colours for light and dark, type, buttons, notices."""

from importlib import resources

from markupsafe import Markup


def base() -> Markup:
    """The style sheet that a page puts before its own."""
    return Markup(resources.files(__package__).joinpath("base.css").read_text(encoding="utf-8"))
