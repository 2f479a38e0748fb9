# SPDX-License-Identifier: Apache-2.0
"""Options of one run: ONNX Runtime's RunOptions, from names and values or as the user made them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnx_multi_backend.engines.ort import errors, runtime
from onnx_multi_backend.engines.ort.cuda import graphs as cuda_graphs
from onnx_multi_backend.engines.ort.options import SHOWN
from onnx_multi_backend.errors import OptionError, OptionTypeError

_NAMES = ("log_severity_level", "log_verbosity_level", "logid", "only_execute_path_to_fetches", "training_mode")


def check_run_options(given: object, preset: str) -> None:
    """Refuse what is no onnxruntime.RunOptions.

    Raises
    ------
    OptionTypeError
    """
    if not isinstance(given, runtime.load().RunOptions):
        raise OptionTypeError(
            f"{preset}: run_options is a mapping of names to values or an onnxruntime.RunOptions; {type(given).__name__} was given."
        )


def make_run_options(options: Mapping[str, Any]) -> Any:
    """RunOptions from names and values; a name with a dot is a run configuration entry, and so is that of a CUDA graph."""
    made = runtime.load().RunOptions()
    known = [name for name in _NAMES if hasattr(made, name)]  # a build without training lacks its mode
    for name, value in options.items():
        if "." in name or name == cuda_graphs.ENTRY:
            try:
                made.add_run_config_entry(name, str(value))
            except errors.all_errors() as error:
                raise OptionError(f"run option {name[:SHOWN]!r} is not taken: {errors.first_line(error)}.") from error
        elif name in known:
            try:
                setattr(made, name, value)
            except TypeError as error:
                raise OptionTypeError(
                    f"run option {name!r} is a {type(getattr(made, name)).__name__}; {value!r} was given."
                ) from error
        else:
            raise OptionError(
                f"ONNX Runtime has no run option {name!r}. Known: {', '.join(known)}, and configuration entries "
                "such as 'memory.enable_memory_arena_shrinkage'."
            )
    return made
