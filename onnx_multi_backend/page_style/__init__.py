# SPDX-License-Identifier: Apache-2.0
"""What all pages of the package look like: colours for light and dark, type, buttons, notices."""

from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def environment(package: str, folder: str) -> Environment:
    """Where the templates of a page are found, in a folder of a package; what they show is escaped."""
    return Environment(
        loader=PackageLoader(package, folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def base() -> Markup:
    """The style sheet that a page puts before its own."""
    return Markup(resources.files(__package__).joinpath("base.css").read_text(encoding="utf-8"))
