# SPDX-License-Identifier: Apache-2.0
"""The user's data: read once, checked against the model, and kept in files so that memory does not grow with it."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from onnx_multi_backend.calibration.progress import Progress
from onnx_multi_backend.errors import CalibrationDataError, InputError
from onnx_multi_backend.running.feeds import FeedMaker
from onnx_multi_backend.sessions.signature import Signature

#: One batch in so many is held back, to measure the quantized model on.
HELD_BACK = 5


class Batch(NamedTuple):
    """One batch of data.

    Attributes
    ----------
    feeds : dict of str to array
        By the names of the model's inputs.
    labels : object
        What the batch holds beyond the inputs; None for nothing.
    """

    feeds: dict[str, Any]
    labels: Any


class Reader:
    """Turns what the user gave into batches.

    Parameters
    ----------
    data : iterable
        Of inputs in any of the three forms. A list or tuple longer than the inputs, and a mapping with more names, carry labels:
        PyTorch's DataLoader does.
    signature : Signature
    most : int, optional
        Read no more batches than these.
    """

    def __init__(self, data: Any, signature: Signature, most: int | None = None) -> None:
        if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
            raise CalibrationDataError(
                f"data is an iterable of inputs, for example a list of arrays or a DataLoader; {type(data).__name__} was given."
            )
        self._data = data
        self._signature = signature
        self._most = most
        self._make = FeedMaker(signature)
        self._names = [info.name for info in signature.inputs]

    def __iter__(self) -> Iterator[Batch]:
        """Yield each batch once.

        Raises
        ------
        CalibrationDataError
            There is no batch, or one does not fit the model.
        """
        count = 0
        for given in self._data:
            if self._most is not None and count >= self._most:
                break
            inputs, labels = self._split(given)
            try:
                yield Batch(self._make(inputs), labels)
            except InputError as error:
                raise CalibrationDataError(f"Batch {count} of data does not fit the model: {error}") from error
            count += 1
        if not count:
            raise CalibrationDataError(
                "data is empty: it gave no batch. A generator can be read once only; make a new one, or pass a list."
            )

    def _split(self, given: Any) -> tuple[Any, Any]:
        if isinstance(given, Mapping):
            others = {name: value for name, value in given.items() if name not in self._names}
            if others and all(name in given for name in self._names):
                return {name: given[name] for name in self._names}, others
        elif isinstance(given, (list, tuple)) and len(given) > len(self._names) > 0:
            labels = given[len(self._names) :]
            return list(given[: len(self._names)]), labels[0] if len(labels) == 1 else labels
        return given, None


class Spool:
    """Batches in files of a temporary folder, to be read as often as needed, one at a time.

    Attributes
    ----------
    calibration, held_back : list of Path
        The batches that ranges are taken from, and those that the quantized model is measured on. With one batch both are that.
    """

    def __init__(self, reader: Reader, progress: Progress) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="onnx_multi_backend_")
        paths: list[Path] = []
        with progress.bar("Reading data") as step:
            for i, batch in enumerate(reader):
                path = Path(self._folder.name) / str(i)
                path.write_bytes(pickle.dumps(batch, protocol=5))
                paths.append(path)
                step()
        self.held_back = paths[HELD_BACK - 1 :: HELD_BACK] or paths[-1:]
        self.calibration = [p for p in paths if p not in self.held_back] or paths
        self.independent = self.held_back != self.calibration

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(paths: Iterable[Path]) -> Iterator[Batch]:
    """Read batches that `Spool` wrote."""
    for path in paths:
        yield pickle.loads(path.read_bytes())
