# SPDX-License-Identifier: Apache-2.0
"""The ranges of a model's tensors: what calibration finds, whichever engine wants it in whatever form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx_multi_backend.errors import CalibrationTableError

#: Rounds to the largest float32.
_LARGEST = 3.4028235677973366e38


class Ranges(Mapping[str, tuple[float, float]]):
    """The lowest and the highest value of each tensor.

    Parameters
    ----------
    ranges : mapping of str to (float, float)
        By the tensor's name in the model; float32 values.

    Raises
    ------
    CalibrationTableError
        A range is not finite, or its lowest value is above its highest.
    """

    def __init__(self, ranges: Mapping[str, tuple[float, float]]) -> None:
        if not isinstance(ranges, Mapping):
            raise CalibrationTableError(f"Ranges are a mapping of tensor name to (low, high); {ranges!r} was given.")
        for name, pair in ranges.items():
            try:
                low, high = map(float, pair)
            except (TypeError, ValueError, OverflowError) as error:
                raise CalibrationTableError(
                    f"The range of tensor {name!r} is a pair (low, high); {pair!r} was given."
                ) from error
            if not isinstance(name, str) or "\n" in name:
                raise CalibrationTableError(f"{name!r} is not the name of a tensor: text without a line break.")
            if not (abs(low) <= _LARGEST and abs(high) <= _LARGEST):
                raise CalibrationTableError(f"The range of tensor {name!r} is not finite: ({low}, {high}).")
            if low > high:
                raise CalibrationTableError(f"The range of tensor {name!r} is empty: {low} is above {high}.")
        self._ranges = {name: (float(low), float(high)) for name, (low, high) in ranges.items()}

    def __getitem__(self, name: str) -> tuple[float, float]:
        return self._ranges[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._ranges)

    def __len__(self) -> int:
        return len(self._ranges)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} tensors)"

    def magnitude(self, name: str) -> float:
        """The largest magnitude of a tensor, which a symmetric quantization needs."""
        low, high = self._ranges[name]
        return max(abs(low), abs(high))
