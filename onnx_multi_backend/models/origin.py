# SPDX-License-Identifier: Apache-2.0
"""Where a model came from: enough to load it again, and to check whether its files are still the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.models.stamp import Stamp


@dataclass(frozen=True)
class Origin:
    """The files of a model by their stamps.

    Attributes
    ----------
    label : str
        How messages call the model.
    path : Path or None
        The file, when the model was given as one.
    stamp : Stamp or None
        What the file system said of the file.
    beside : tuple of (Path, Stamp or None)
        Other files that some of its tensors lie in, with their stamps.
    reordered : bool
        Whether nodes stood before those whose outputs they read.
    """

    label: str
    path: Path | None = None
    stamp: Stamp | None = None
    beside: tuple[tuple[Path, Stamp | None], ...] = ()
    reordered: bool = False

    def check_unchanged(self) -> None:
        """Refuse to go on with a file that is another one by now.

        Raises
        ------
        InvalidModelError
        """
        if self.path is not None and stamp_of(self.path) != self.stamp:
            raise self.changed()
        for file, stamp in self.beside:
            if stamp_of(file) != stamp:
                raise InvalidModelError(
                    f"{self.label}: '{file}', which holds weights of it, was changed or removed after the model was "
                    "prepared. Prepare it again."
                )

    def changed(self) -> InvalidModelError:
        """The error of a model whose own file is another one by now."""
        return InvalidModelError(
            f"{self.label} was changed or removed after it was prepared. Prepare it again; to be safe from that, "
            "give the model as bytes."
        )

    def linked(self) -> Origin:
        """The same once an engine was given links to its weights: a link moves the time of a file's last change.

        Only that one: a file of another size or time of writing is still another file.
        """
        fresh = tuple((file, stamp_of(file)) for file, _ in self.beside)
        kept = tuple(
            (file, now if now is not None and then is not None and now[:2] == then[:2] else then)
            for (file, now), (_, then) in zip(fresh, self.beside, strict=True)
        )
        return replace(self, beside=kept)


def stamp_of(path: Path) -> Stamp | None:
    """What the file system says of a file; None where it says nothing: reading the file then reports what is wrong."""
    try:
        return Stamp.of(path)
    except (OSError, ValueError):
        return None
