# SPDX-License-Identifier: Apache-2.0
"""The errors and warnings of the package.

Every error is an `OnnxMultiBackendError` and also the built-in that fits it, and its message says what was wrong,
where, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Characters of an engine's words that a message repeats: lists of operators fit, dumps of a model do not.
_MOST_CHARACTERS = 4000


def shortened(words: str) -> str:
    """An engine's words, without what goes beyond a sensible length."""
    return words if len(words) <= _MOST_CHARACTERS else words[:_MOST_CHARACTERS] + " ..."


class OnnxMultiBackendError(Exception):
    """Base of every error that this package raises on purpose."""


class InvalidModelError(OnnxMultiBackendError, ValueError):
    """The model is not a valid ONNX model: unreadable, truncated, contradictory, or with its external data missing."""


class UnsupportedModelError(OnnxMultiBackendError, NotImplementedError):
    """The model is valid, and this preset cannot run it.

    Parameters
    ----------
    message : str
        What cannot be run, on which preset, and what to do about it.
    operators : sequence of str
        The operators that the engine lacks, ``domain.OpType`` (``OpType`` alone for the default domain).
    reasons : sequence of str
        One line for each cause, naming node, operator and cause.
    """

    def __init__(self, message: str, *, operators: Sequence[str] = (), reasons: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.operators = tuple(operators)
        self.reasons = tuple(reasons) or (message,)


class OpenShapesError(UnsupportedModelError):
    """The engine refuses the model while sizes of its inputs are open, and may run it once they are known."""


class DeviceError(OnnxMultiBackendError, ValueError):
    """The device string is not one that the preset knows."""


class DeviceUnavailableError(OnnxMultiBackendError, RuntimeError):
    """The device is known but cannot be used here; the message names the cause and the cure."""


class EngineNotInstalledError(OnnxMultiBackendError, ImportError):
    """The engine's package is missing; the message says what to install."""


class OptionError(OnnxMultiBackendError, ValueError):
    """An option is unknown, missing, or has a value that is not allowed."""


class OptionTypeError(OptionError, TypeError):
    """An option has a value of the wrong type."""


class CalibrationTableError(OptionError):
    """A calibration table is missing, damaged, or fits no tensor of the model."""


class InputError(OnnxMultiBackendError, ValueError):
    """The inputs of a run do not fit the model: number, names, dtype or shape."""


class CalibrationDataError(InputError):
    """The data of a calibration is missing, does not fit the model, or makes tensors of it infinite or NaN."""


class AlreadyQuantizedError(UnsupportedModelError):
    """The model is to be quantized, and is quantized already."""


class RunError(OnnxMultiBackendError, RuntimeError):
    """The engine failed while it ran the model."""


class EngineCrashedError(RunError):
    """The process that ran a model for ``isolate=True`` has died, while it prepared the model or ran it.

    Parameters
    ----------
    message : str
        What it died of, on which inputs, and how to go on.
    signal : int, optional
        The number of the signal that ended it.
    exit_code : int, optional
        As `subprocess.Popen.returncode` has it.
    """

    def __init__(self, message: str, *, signal: int | None = None, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.signal = signal
        self.exit_code = exit_code


class FallbackWarning(UserWarning):
    """Some nodes of a model run on another execution provider than the one that was asked for."""


class PrecisionWarning(UserWarning):
    """The engine computes some nodes of a model less exactly than their type says."""


class CacheWarning(UserWarning):
    """The cache cannot be used, or held a damaged entry; the model is prepared anyway."""


class EnvironmentWarning(UserWarning):
    """The Python environment holds packages that get in each other's way."""


class PresetWarning(UserWarning):
    """A third-party preset could not be loaded, or a preset is used in a way that defeats its purpose."""
