# SPDX-License-Identifier: Apache-2.0
"""Outputs: shown in one row each, and saved."""

from __future__ import annotations

import contextlib
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from onnx_multi_backend.cli import messages
from onnx_multi_backend.cli.console import one_line
from onnx_multi_backend.cli.inputs import WIDER_DTYPES
from onnx_multi_backend.errors import InputError, OptionError

_MOST_SHOWN = 8


def rows(name: str, value: Any) -> Iterator[list[str]]:
    """Name, dtype, shape and values of an output; a sequence has a row for each element."""
    if value is None:
        yield [name, "-", "-", "empty optional"]
    elif isinstance(value, (list, tuple)):
        if not value:
            yield [name, "-", "-", "empty sequence"]
        for i, element in enumerate(value):
            yield from rows(f"{name}[{i}]", element)
    elif isinstance(value, np.ndarray):
        dtype = "string" if value.dtype == object else value.dtype.name
        yield [name, dtype, str(list(value.shape)), one_line(_summary(value))]
    else:
        yield [name, type(value).__name__, "-", one_line(repr(value))]


def _summary(array: np.ndarray[Any, Any]) -> str:
    if array.size == 0:
        return "no elements"
    if array.size <= _MOST_SHOWN:
        return _values(array)
    if array.dtype == object:
        return f"{_values(array.reshape(-1)[:3])[:-1]}, ...]"
    if array.dtype == bool:
        return f"{int(array.sum())} of {array.size} true"
    wide = array.astype(WIDER_DTYPES[array.dtype]) if array.dtype in WIDER_DTYPES else array
    if wide.dtype.kind == "c":
        return f"mean {wide.mean():.6g}"
    finite = wide[np.isfinite(wide)]
    odd = [f"{n} {word}" for word, n in (("nan", int(np.isnan(wide).sum())), ("inf", int(np.isinf(wide).sum()))) if n]
    if not finite.size:
        return ", ".join(odd)
    mean = finite.mean(dtype=np.float64)
    return ", ".join([f"min {finite.min():.6g}", f"mean {mean:.6g}", f"max {finite.max():.6g}", *odd])


def _values(array: np.ndarray[Any, Any]) -> str:
    if array.dtype == object:
        return repr(array.tolist())
    wide = array.astype(WIDER_DTYPES[array.dtype]) if array.dtype in WIDER_DTYPES else array
    return np.array2string(wide, separator=", ", precision=6, max_line_width=10_000)


def check_target(path: Path) -> None:
    """Look whether a file can be saved there, before anything slow is done.

    Raises
    ------
    InputError
    """
    if path.suffix != ".npz":
        raise InputError(f"--save {path}: the file's name ends with .npz.")
    if path.is_dir():
        raise InputError(f"--save {path}: it is a directory.")
    if not path.parent.is_dir():
        raise InputError(f"--save {path}: there is no folder '{path.parent}'.")


def save(path: Path, outputs: Mapping[str, Any]) -> None:
    """Save outputs by name; the elements of a sequence as ``name[0]``, ``name[1]``.

    The file appears whole or not at all. What .npz cannot hold is saved wider, or left out, and said.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        # Not numpy.savez: it pickles objects, and its own parameters take the names "file" and "allow_pickle".
        with zipfile.ZipFile(partial, "x", zipfile.ZIP_STORED) as archive:
            for name, array in _arrays(outputs):
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array, allow_pickle=False)
        partial.replace(path)
    except OSError as error:
        raise InputError(f"--save {path}: it cannot be written: {error.strerror}.") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()


def _arrays(outputs: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    for name, value in outputs.items():
        if isinstance(value, (list, tuple)):
            yield from _arrays({f"{name}[{i}]": element for i, element in enumerate(value)})
        elif not isinstance(value, np.ndarray):
            what = "an empty optional" if value is None else f"a {type(value).__name__}"
            messages.say("note", f"{name} is {what}, which .npz cannot hold; it is not in the file.")
        elif value.dtype == object:
            yield name, value.astype(str) if value.size else np.empty(value.shape, dtype=str)
        elif value.dtype in WIDER_DTYPES:
            wide = WIDER_DTYPES[value.dtype]
            messages.say(
                "note", f"{name} is {value.dtype.name}, which .npz cannot hold; saved as {wide.name}, exactly."
            )
            yield name, value.astype(wide)
        else:
            yield name, value


def check_written(path: Path | None, suffixes: tuple[str, ...], *, model: str | None = None) -> None:
    """Look whether a file can be written before anything slow is done.

    Parameters
    ----------
    path : Path, optional
    suffixes : tuple of str
    model : str, optional
        The model that it is made from, which it must not replace.

    Raises
    ------
    OptionError
    """
    if path is None:
        return
    if path.suffix not in suffixes:
        either = " or ".join(filter(None, [", ".join(suffixes[:-1]), suffixes[-1]]))
        raise OptionError(f"'{path}' has to be a {either} file.")
    if not path.parent.is_dir():
        raise OptionError(f"'{path}' cannot be written: there is no folder '{path.parent}'.")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise OptionError(f"'{path}' cannot be written: it is a folder, or lies in one that is read-only.")
    if model is not None and path.exists() and Path(model).exists() and path.samefile(model):
        raise OptionError(f"'{path}' is the float model itself, which would be lost. Give the int8 model another name.")
