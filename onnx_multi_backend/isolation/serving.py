# SPDX-License-Identifier: Apache-2.0
"""A process that answers messages on its standard streams until the other end is closed."""

from __future__ import annotations

import os
import pickle
import threading
import time
from collections.abc import Callable

from onnx_multi_backend.errors import OnnxMultiBackendError, RunError
from onnx_multi_backend.isolation.pipe import Pipe

#: Seconds between two looks at whether the process that started this one still lives.
_WATCH = 1.0


def pipe_of_streams(parent: int) -> Pipe:
    """Take over the standard streams for messages, and end with the process that has their other ends.

    Parameters
    ----------
    parent : int
        Its id.
    """
    pipe = Pipe(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what an engine prints must not get between the messages
    if hasattr(os, "getppid"):
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    return pipe


def serve(pipe: Pipe, answer: Callable[[bytes], bytes]) -> None:
    """Answer one message after another; does not return."""
    try:
        while True:
            pipe.send(answer(pipe.receive()))
    except (EOFError, BrokenPipeError):
        os._exit(0)  # the engines' own clean-up is not waited for


def pickled(error: Exception) -> bytes:
    """An error, or one that says the same where it cannot travel."""
    try:
        data = pickle.dumps(error)
        pickle.loads(data)
    except Exception:  # what an exception of someone else's does when it is pickled is not known
        what = str(error) if isinstance(error, OnnxMultiBackendError) else f"{type(error).__name__}: {error}"
        data = pickle.dumps(RunError(what))
    return data


def _watch(parent: int) -> None:
    """End with the parent, also in the midst of a run."""
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)
