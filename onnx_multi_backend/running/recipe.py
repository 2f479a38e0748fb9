# SPDX-License-Identifier: Apache-2.0
"""How a model is prepared again: what a pickle of it holds, and what a process of its own is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnx_multi_backend.errors import OptionTypeError

if TYPE_CHECKING:
    from onnx_multi_backend.running.prepared import PreparedModel


@dataclass(frozen=True)
class Recipe:
    """How to prepare the same model again.

    Attributes
    ----------
    prepare : callable
        A preset's ``prepare``.
    source : str or bytes
    device : str or None
    options : mapping of str to value
    providers : tuple of (str, mapping)
        What `PreparedModel.set_providers` chose afterwards.
    """

    prepare: Callable[..., PreparedModel]
    source: str | bytes
    device: str | None
    options: Mapping[str, Any]
    providers: tuple[tuple[str, Mapping[str, str]], ...] = ()

    def check_pickled(self, who: str) -> None:
        """Refuse options whose content cannot be read back.

        Parameters
        ----------
        who : str
            How the message calls the prepared model.

        Raises
        ------
        OptionTypeError
        """
        for name, value in self.options.items():
            check_option_pickled(name, value, who)


def check_option_pickled(name: str, value: object, who: str) -> None:
    """Refuse an option whose content cannot be read back; see `Recipe.check_pickled`."""
    if type(value).__module__.startswith("onnxruntime"):
        raise OptionTypeError(
            f"{who} cannot be pickled: {name} is an onnxruntime.{type(value).__name__}, whose content cannot be "
            f"read back. Pass {name} as a mapping of names to values."
        )


def prepare_again(recipe: Recipe) -> PreparedModel:
    """Prepare the model."""
    prepared = recipe.prepare(recipe.source, recipe.device, **recipe.options)
    if recipe.providers:
        prepared.set_providers([name for name, _ in recipe.providers], [given for _, given in recipe.providers])
    return prepared
