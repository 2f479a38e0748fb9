# SPDX-License-Identifier: Apache-2.0
"""Data for calibration from the command line: a folder, a file, or something in a module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from onnx_multi_backend.cli.inputs import read
from onnx_multi_backend.errors import CalibrationDataError, OnnxMultiBackendError, OptionError
from onnx_multi_backend.models.tensors import TensorInfo

_HOW = "Give a folder of .npy or .npz files, an .npz file, or module:name."


def open_data(text: str, infos: tuple[TensorInfo, ...]) -> Any:
    """What ``--data`` names, as an iterable of batches.

    Parameters
    ----------
    text : str
        A folder: each .npy or .npz file in it is a batch, in the order of their names. An .npz file: its arrays hold one sample
        more in each entry of their first axis. ``module:name``: an iterable, or a callable that returns one.
    infos : tuple of TensorInfo
        The inputs of the model.

    Raises
    ------
    CalibrationDataError
        There is no such file or folder, or nothing in it.
    OptionError
        There is no such module or name.
    """
    path = Path(text)
    if path.is_dir():
        files = sorted(p for p in path.iterdir() if p.suffix in (".npy", ".npz"))
        if not files:
            raise CalibrationDataError(f"--data {text}: the folder has no .npy and no .npz file.")
        return (read([str(file)], infos) for file in files)
    if path.suffix == ".npz" and path.is_file():
        return _samples(path, infos)
    if ":" in text and not path.exists():
        return _from_module(text)
    raise CalibrationDataError(f"--data {text}: there is no such folder or .npz file. {_HOW}")


def named(text: str, option: str) -> Any:
    """What ``module:name`` means; the current folder is looked in too.

    Raises
    ------
    OptionError
    """
    module, _, name = text.partition(":")
    if not module or not name:
        raise OptionError(f"{option} {text}: write module:name, for example my_metrics:accuracy.")
    if "" not in sys.path and "." not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise OptionError(f"{option} {text}: there is no module {error.name!r} here.") from error
    except Exception as error:  # whatever the user's module does when it is imported
        raise _theirs(f"{option} {text}: importing {module!r}", error) from error
    if not hasattr(found, name):
        raise OptionError(f"{option} {text}: the module {module!r} has no {name!r}.")
    return getattr(found, name)


def of_the_user(function: Any, text: str) -> Any:
    """A function of the user's: what it raises is reported as the user's own.

    Raises
    ------
    OptionError
        It is not a function.
    """
    if not callable(function):
        raise OptionError(f"{text} is not a function: {function!r}.")

    def call(*given: Any) -> Any:
        try:
            return function(*given)
        except OnnxMultiBackendError:
            raise
        except Exception as error:  # whatever the user's function does
            raise _theirs(text, error) from error

    return call


def _theirs(what: str, error: Exception) -> OptionError:
    return OptionError(f"{what} raised {type(error).__name__}: {error}. --debug shows where.")


def _from_module(text: str) -> Any:
    found = named(text, "--data")
    batches = of_the_user(found, f"--data {text}")() if callable(found) else found
    if isinstance(batches, (str, bytes)) or not isinstance(batches, Iterable):
        return batches  # reported where it is read
    return _iterated(batches, f"--data {text}")


def _iterated(batches: Iterable[Any], text: str) -> Iterator[Any]:
    left = of_the_user(iter, text)(batches)
    following, end = of_the_user(next, text), object()
    while (batch := following(left, end)) is not end:
        yield batch


def _samples(path: Path, infos: tuple[TensorInfo, ...]) -> Iterator[dict[str, Any]]:
    arrays = read([str(path)], infos)
    counts = {len(array) if array.ndim else 0 for array in arrays.values()}
    if len(counts) != 1 or not counts.copy().pop():
        raise CalibrationDataError(
            f"--data {path}: its arrays hold {', '.join(map(str, sorted(counts)))} samples. The first axis of each is the sample, and "
            "all hold as many."
        )
    ranks = {info.name: len(info.shape) if info.shape is not None else None for info in infos}

    def sample(name: str, i: int) -> Any:
        array = arrays[name]
        whole = ranks.get(name) is not None and array.ndim == (ranks[name] or 0) + 1
        return array[i] if whole else array[i : i + 1]

    return ({name: sample(name, i) for name in arrays} for i in range(counts.pop()))
