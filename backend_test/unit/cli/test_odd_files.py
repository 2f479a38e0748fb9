# SPDX-License-Identifier: Apache-2.0
"""Files that are damaged, enormous or no files at all cost an error of one line, and nothing waits for them."""

from __future__ import annotations

import io
import json
import os
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from backend_test.unit import models
from backend_test.unit.cli.conftest import Cli

Save = Callable[[onnx.ModelProto], Path]


def _npy(header: bytes) -> bytes:
    padded = header + b" " * (118 - len(header) - 1) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(padded)) + padded


def _npz(flag: tuple[int, int, int] | None) -> bytes:
    """An archive of one array; one byte of its two headers changed: offsets in the local and the central one, and the value."""
    stored, array = io.BytesIO(), io.BytesIO()
    np.save(array, np.ones(2, np.float32))
    with zipfile.ZipFile(stored, "w") as archive:
        archive.writestr("x.npy", array.getvalue())
    data = bytearray(stored.getvalue())
    if flag is not None:
        local, central, value = flag
        data[local] = data[data.find(b"PK\x01\x02") + central] = value
    return bytes(data)


def _negative() -> bytes:
    tensor = numpy_helper.from_array(np.ones(2, np.float32), "x")
    tensor.dims[0] = -1
    return tensor.SerializeToString()


ODD: dict[str, tuple[str, Callable[[], bytes]]] = {
    "encrypted": ("x.npz", lambda: _npz((6, 8, 1))),
    "packed in an unknown way": ("x.npz", lambda: _npz((8, 10, 99))),
    "packed with LZMA and damaged": ("x.npz", lambda: _npz((8, 10, 14))),
    "packed with bzip2 and damaged": ("x.npz", lambda: _npz((8, 10, 12))),
    "4 TiB": ("x.npy", lambda: _npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,), }")),
    "more than can be counted": (
        "x.npy",
        lambda: _npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (" + b"9" * 30 + b",), }"),
    ),
    "a type that there is not": ("x.npy", lambda: _npy(b"{'descr': 5, 'fortran_order': False, 'shape': (2,), }")),
    "a negative dimension": ("x.pb", _negative),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_input_is_an_error(cli: Cli, saved: Save, tmp_path: Path, name: str) -> None:
    path = tmp_path / ODD[name][0]
    path.write_bytes(ODD[name][1]())
    error = cli("run", saved(models.relu(["N"])), "--preset", "OrtCpu", "--input", path).error()
    assert "a fault of" not in error
    assert path.name in error


@pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs")
@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pb"])
def test_a_pipe_is_no_input(cli: Cli, saved: Save, tmp_path: Path, suffix: str) -> None:
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    assert (
        "is not a .npy, .npz or .pb file"
        in cli("run", saved(models.relu()), "--preset", "OrtCpu", "--input", pipe).error()
    )


def test_what_a_model_is_called_does_not_steer_the_terminal(cli: Cli, saved: Save) -> None:
    made = models.relu()
    made.graph.name = "\x1b]0;title\x07\x1b[2J\x9b31m"
    done = cli("inspect", saved(made), "--preset", "OrtCpu")
    assert done.code == 0
    assert not any(c in done.out + done.err for c in "\x1b\x07\x9b")
    assert r"\x1b[2J" in done.out
    told = cli("inspect", saved(made), "--preset", "OrtCpu", "--json").out
    assert "\x9b" not in told
    assert json.loads(told)["model"]["graph"] == made.graph.name


def test_the_cache_is_in_the_users_folder(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    assert str(tmp_path / "home" / "kept") in cli("cache", "info", "--cache-dir", "~/kept").out
    monkeypatch.setenv("ONNX_MULTI_BACKEND_CACHE_DIR", "~/other")
    assert str(tmp_path / "home" / "other") in cli("cache", "info").out
