# SPDX-License-Identifier: Apache-2.0
"""Session options from a mapping of names to values."""

from __future__ import annotations

import enum
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from onnx_multi_backend.engines.ort import errors, runtime
from onnx_multi_backend.engines.simplest import SIMPLEST
from onnx_multi_backend.errors import OptionError, OptionTypeError
from onnx_multi_backend.host.cpus import MOST_THREADS
from onnx_multi_backend.host.devices import similar

_RECORD_PLACEMENT = "session.record_ep_graph_assignment_info"
_EXTERNAL_DATA_FOLDER = "session.model_external_initializers_file_folder_path"


#: The session option that names libraries with custom operators; ONNX Runtime has a method for it.
CUSTOM_OPS = "custom_ops_library"
OPTIMIZED_MODEL = "optimized_model_filepath"

#: Characters of an entry's name that a message shows; ONNX Runtime takes 1024.
SHOWN = 80

#: Session options that have ONNX Runtime write files.
_WRITE_FILES = (OPTIMIZED_MODEL, "enable_profiling")


def check_session_options(options: object) -> None:
    """Hold session options to the names and types that ONNX Runtime knows.

    Parameters
    ----------
    options : mapping of str to value, onnxruntime.SessionOptions or None
        Names are SessionOptions' attributes (enumerations may be given by name) or, with a dot in them, session
        configuration entries. ``custom_ops_library`` is the path of a library with custom operators, or a list of paths.

    Raises
    ------
    OptionError
    """
    if options is not None and not isinstance(options, runtime.load().SessionOptions):
        make_session_options(options)


def make_session_options(options: object, *, external_data_folder: str | None = None) -> Any:
    """SessionOptions that record the placement of nodes and keep ONNX Runtime's log off the terminal.

    An ``onnxruntime.SessionOptions`` is used as it is (with the recording switched on), since it cannot be copied.
    """
    ort = runtime.load()
    if isinstance(options, ort.SessionOptions):
        made = options
    else:
        made = ort.SessionOptions()
        made.log_severity_level = 4  # what it would log, it also raises
        if options is not None:
            if not isinstance(options, Mapping):
                raise OptionTypeError(
                    f"session_options is a mapping of names to values or an onnxruntime.SessionOptions; "
                    f"{type(options).__name__} was given."
                )
            for name, value in options.items():
                _set(made, name, value)
    _set_entry(made, _RECORD_PLACEMENT, "1")
    if external_data_folder is not None:
        _set_entry(made, _EXTERNAL_DATA_FOLDER, external_data_folder)
    return made


def of_custom_operators(options: object) -> dict[str, Any] | None:
    """The part of session options without which nodes of custom operators are not known."""
    found = {n: v for n, v in options.items() if n == CUSTOM_OPS} if isinstance(options, Mapping) else {}
    return found or None


def why_no_session(options: Mapping[str, Any]) -> str | None:
    """Why ONNX Runtime builds no session with these options, whatever the model; None: it builds one."""
    made = make_session_options({n: v for n, v in options.items() if n not in _WRITE_FILES})
    try:
        runtime.session_class()(SIMPLEST.SerializeToString(), made, enable_fallback=0)
    except errors.all_errors() as error:
        return errors.first_line(error)
    return None


def _register(made: Any, libraries: Any) -> None:
    paths = [libraries] if isinstance(libraries, (str, os.PathLike)) else libraries
    if not isinstance(paths, Collection) or not all(isinstance(path, (str, os.PathLike)) for path in paths):
        raise OptionTypeError(f"session option {CUSTOM_OPS!r} is a path or a list of paths; {libraries!r} was given.")
    for library in paths:
        try:
            made.register_custom_ops_library(os.fspath(library))
        except errors.all_errors() as error:
            raise OptionError(
                f"session option {CUSTOM_OPS!r}: {library!r} cannot be loaded: {errors.first_line(error)}. Name the library that "
                "holds the operators; onnxruntime_extensions.get_library_path() returns that of onnxruntime-extensions."
            ) from error


def _set_entry(made: Any, name: str, value: str) -> None:
    """Set a configuration entry; one that is there already is left alone, of which ONNX Runtime's log would tell."""
    try:
        known = made.get_session_config_entry(name) == value
    except RuntimeError:  # it is not there
        known = False
    if not known:
        made.add_session_config_entry(name, value)


def _set(made: Any, name: object, value: Any) -> None:
    if not isinstance(name, str):
        raise OptionTypeError(f"Names of session options are strings; {name!r} was given.")
    if "." in name:
        try:
            _set_entry(made, name, str(value))
        except errors.all_errors() as error:
            raise OptionError(f"session option {name[:SHOWN]!r} is not taken: {errors.first_line(error)}.") from error
        return
    if name == CUSTOM_OPS:
        _register(made, value)
        return
    known = sorted(n for n, p in vars(type(made)).items() if isinstance(p, property))
    if name not in known:
        raise OptionError(
            f"ONNX Runtime has no session option {name!r}.{similar(name, [*known, CUSTOM_OPS])} Known: {', '.join([*known, CUSTOM_OPS])}, and configuration entries "
            "such as 'session.intra_op.allow_spinning'."
        )
    if name == OPTIMIZED_MODEL and isinstance(value, str) and not Path(value).absolute().parent.is_dir():
        raise OptionError(
            f"session option {name!r}: there is no folder {str(Path(value).absolute().parent)!r}. Make it first."
        )
    if name.endswith("_num_threads") and isinstance(value, int) and value > MOST_THREADS:
        raise OptionError(f"session option {name!r} is at most {MOST_THREADS}; {value} was given.")
    current = getattr(made, name)
    if isinstance(value, str) and not isinstance(current, str) and hasattr(type(current), "__members__"):
        members: Mapping[str, enum.Enum] = type(current).__members__
        if value not in members:
            raise OptionError(f"session option {name!r} is one of {', '.join(members)}; {value!r} was given.")
        value = members[value]
    try:
        setattr(made, name, value)
    except errors.all_errors() as error:
        raise OptionTypeError(f"session option {name!r} is a {type(current).__name__}; {value!r} was given.") from error
