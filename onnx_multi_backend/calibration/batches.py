# SPDX-License-Identifier: Apache-2.0
"""The user's data: read once, checked against the model, and kept in files so that memory does not grow with it."""

from __future__ import annotations

import itertools
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
    number : int
        Its place in the user's data.
    """

    feeds: dict[str, Any]
    labels: Any
    number: int


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
        self._known = {*self._names, *(info.name for info in signature.overridable)}

    def __iter__(self) -> Iterator[Batch]:
        """Yield each batch once.

        Raises
        ------
        CalibrationDataError
            There is no batch, or one does not fit the model.
        """
        count = 0
        for given in itertools.islice(self._data, self._most):
            inputs, labels = self._split(given)
            try:
                yield Batch(self._make(inputs), labels, count)
            except InputError as error:
                raise CalibrationDataError(f"Batch {count} of data does not fit the model: {error}") from error
            count += 1
        if not count:
            raise CalibrationDataError(
                "data is empty: it gave no batch. A generator can be read once only; make a new one, or pass a list."
            )

    def _split(self, given: Any) -> tuple[Any, Any]:
        if isinstance(given, Mapping):
            others = {name: value for name, value in given.items() if name not in self._known}
            if others and all(name in given for name in self._names):
                return {name: value for name, value in given.items() if name in self._known}, others
        elif isinstance(given, (list, tuple)) and len(given) > len(self._names) > 0:
            labels = given[len(self._names) :]
            return list(given[: len(self._names)]), labels[0] if len(labels) == 1 else labels
        return given, None


class Spool:
    """Batches in files of a temporary folder, to be read as often as needed, one at a time.

    Parameters
    ----------
    reader : Reader
    progress : Progress
    proves : bool
        Whether some batches are kept apart to prove the chosen model on; labels are kept too then, in memory.

    Attributes
    ----------
    calibration, held_back, proof : list of Path
        The batches that ranges are taken from, those that models are chosen by, and those that the chosen one is proven on. Where there are
        too few batches, one of them serves for several.
    every : list of Path
        All batches, those that were held back first.
    """

    def __init__(self, reader: Reader, progress: Progress, *, proves: bool) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="onnx_multi_backend_")
        self._labels: dict[Path, Any] = {}
        paths: list[Path] = []
        try:
            with progress.each("Reading data", reader) as batches:
                for batch in batches:
                    path = Path(self._folder.name) / str(batch.number)
                    path.write_bytes(pickle.dumps(batch._replace(labels=None), protocol=5))
                    if proves:
                        self._labels[path] = batch.labels
                    paths.append(path)
        except BaseException:
            self.close()
            raise
        self.held_back = paths[HELD_BACK - 1 :: HELD_BACK] or paths[-1:]
        self.proof = (paths[HELD_BACK - 2 :: HELD_BACK] or self.held_back) if proves else []
        apart = dict.fromkeys([*self.held_back, *self.proof])
        self.calibration = [p for p in paths if p not in apart] or paths
        self.every = [*apart, *(path for path in paths if path not in apart)]
        self.independent = apart.keys().isdisjoint(self.calibration) and set(self.proof).isdisjoint(self.held_back)

    def read(self, paths: Iterable[Path]) -> Iterator[Batch]:
        """Read batches again, with their labels."""
        for batch, path in zip(read(paths), paths, strict=True):
            yield batch._replace(labels=self._labels.get(path))

    def close(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(paths: Iterable[Path]) -> Iterator[Batch]:
    """Read batches that `Spool` wrote, without labels."""
    for path in paths:
        yield pickle.loads(path.read_bytes())
