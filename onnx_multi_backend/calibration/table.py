# SPDX-License-Identifier: Apache-2.0
"""Calibration tables in the three forms that ONNX Runtime's TensorRT provider and its tools know."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from onnx_multi_backend import whole_file
from onnx_multi_backend.calibration.ranges import Ranges
from onnx_multi_backend.engines.ort import calibration_table
from onnx_multi_backend.errors import CalibrationTableError, OptionError

#: What the first line of TensorRT's own cache says for TensorRT 10, which ONNX Runtime 1.31 and 1.32 link; the provider looks for "TRT-".
_HEADER = "TRT-100000-EntropyCalibration2"

_HOW = "Make one with onnx_multi_backend.calibration.calibrate(model, data)."


class CalibrationTableTensorrt(Ranges):
    """The ranges of a model's tensors, as `OrtTensorrtInt8Backend` takes them.

    A mapping of tensor name to (lowest, highest). TensorRT quantizes symmetrically: what it gets is the largest magnitude, so the files
    for it keep no more than that, but for the JSON form.

    Parameters
    ----------
    ranges : mapping of str to (float, float)

    Raises
    ------
    CalibrationTableError
        There is no range, or one is not finite.
    """

    def __init__(self, ranges: Mapping[str, tuple[float, float]]) -> None:
        super().__init__(ranges)
        if not self:
            raise CalibrationTableError(f"A calibration table holds one range at least. {_HOW}")

    @property
    def magnitudes(self) -> dict[str, float]:
        """The largest magnitude of each tensor."""
        return {name: self.magnitude(name) for name in self}

    @classmethod
    def from_file_flatbuffers(cls, path: str | os.PathLike[str]) -> CalibrationTableTensorrt:
        """Read ONNX Runtime's FlatBuffers table; each range is as wide below zero as above.

        Raises
        ------
        CalibrationTableError
            The file is missing or damaged, or holds an infinity or a NaN.
        """
        read = calibration_table.read("path", path)
        return cls({name: (-value, value) for name, value in read.items()})

    @classmethod
    def from_file_json(cls, path: str | os.PathLike[str]) -> CalibrationTableTensorrt:
        """Read the ``calibration.json`` of ``onnxruntime.quantization.write_calibration_table``, or what `save` writes.

        Raises
        ------
        CalibrationTableError
        """
        text = _text(Path(path))
        try:
            told = json.loads(text)
            if not isinstance(told, dict):
                raise TypeError
            entries = told["data"]
            ranges = {name: (_number(entry["lowest"]), _number(entry["highest"])) for name, entry in entries.items()}
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise _damaged(Path(path), "a table in JSON") from error
        return cls(ranges)

    @classmethod
    def from_file_cache(cls, path: str | os.PathLike[str]) -> CalibrationTableTensorrt:
        """Read the cache that TensorRT's own calibrator writes.

        Raises
        ------
        CalibrationTableError
        """
        lines = _text(Path(path)).split("\n")
        if not lines or not lines[0].startswith("TRT-"):
            raise _damaged(Path(path), 'a TensorRT calibration cache, whose first line begins with "TRT-"')
        ranges: dict[str, tuple[float, float]] = {}
        for line in filter(None, lines[1:]):
            name, colon, scale = line.rpartition(": ")
            try:
                if not colon or len(scale) != 8:
                    raise ValueError(line)
                magnitude = abs(struct.unpack(">f", bytes.fromhex(scale))[0] * 127.0)
            except (ValueError, struct.error) as error:
                raise _damaged(Path(path), f"a TensorRT calibration cache, by its line {line!r}") from error
            if not math.isfinite(magnitude):
                raise CalibrationTableError(
                    f"The calibration table '{path}' gives tensor {name!r} the scale {scale}, which is not finite."
                )
            ranges[name] = (-magnitude, magnitude)
        return cls(ranges)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table in the form that the file's suffix names; an existing file is replaced when the new one is complete.

        Parameters
        ----------
        path : path
            ``.flatbuffers`` for ONNX Runtime's provider, ``.cache`` for TensorRT's own reader, ``.json`` with both ends of each range.

        Raises
        ------
        OptionError
            The suffix is not one of these.
        """
        file = Path(path)
        write = _FORMS.get(file.suffix)
        if write is None:
            raise OptionError(f"A calibration table is a {', '.join(_FORMS)} file; '{file}' was given.")
        whole_file.save(file, write(self))


def _flatbuffers(table: CalibrationTableTensorrt) -> bytes:
    return calibration_table.to_bytes(table.magnitudes)


def _json(table: CalibrationTableTensorrt) -> bytes:
    def array(value: float) -> dict[str, Any]:
        return {"data": value, "dtype": "float32", "CLS": "numpy.array"}

    data = {
        name: {"lowest": array(low), "highest": array(high), "CLS": "TensorData"} for name, (low, high) in table.items()
    }
    method = {"CLS": "CalibrationMethod", "value": "CalibrationMethod.MinMax"}
    return json.dumps({"CLS": "TensorsData", "data": data, "calibration_method": method}).encode()


def _cache(table: CalibrationTableTensorrt) -> bytes:
    def scale(magnitude: float) -> str:
        return struct.pack(">f", magnitude / 127.0).hex()

    lines = [_HEADER, *(f"{name}: {scale(magnitude)}" for name, magnitude in table.magnitudes.items())]
    return "".join(f"{line}\n" for line in lines).encode()


_FORMS: dict[str, Callable[[CalibrationTableTensorrt], bytes]] = {
    ".flatbuffers": _flatbuffers,
    ".json": _json,
    ".cache": _cache,
}


def _number(entry: Any) -> float:
    return float(entry["data"] if isinstance(entry, dict) else entry)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CalibrationTableError(f"There is no calibration table '{path}'. {_HOW}") from None
    except UnicodeDecodeError as error:
        raise _damaged(path, "text") from error
    except OSError as error:
        raise CalibrationTableError(f"The calibration table '{path}' cannot be read: {error.strerror}.") from error


def _damaged(path: Path, form: str) -> CalibrationTableError:
    return CalibrationTableError(
        f"The calibration table '{path}' is damaged or of another format: it is not {form}. {_HOW}"
    )
