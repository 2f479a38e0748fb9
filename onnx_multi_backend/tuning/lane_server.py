# SPDX-License-Identifier: Apache-2.0
"""The process that a lane of its own runs in."""

from __future__ import annotations

import pickle

from onnx_multi_backend.errors import OnnxMultiBackendError, RunError
from onnx_multi_backend.isolation import serving
from onnx_multi_backend.tuning.lane import Lane

#: What a lane may be asked.
_CALLS = frozenset(
    {
        "again",
        "drop",
        "elsewhere_time",
        "evaluate",
        "latency",
        "load_engine",
        "memory",
        "nudged",
        "outputs",
        "prepare",
        "prepare_cached",
        "throughput",
    }
)


def main(parent: int, inputs: int | None, outputs: int | None) -> None:
    """Serve the process that has the other ends of the standard streams; arrays come through these too."""
    pipe = serving.pipe_of_streams(parent)
    lane = Lane(*pickle.loads(pipe.receive()))
    pipe.send(b"v")

    def answer(message: bytes) -> bytes:
        name, args = pickle.loads(message)
        assert name in _CALLS
        try:
            return b"v" + pickle.dumps(getattr(lane, name)(*args))
        except OnnxMultiBackendError as error:
            return b"e" + serving.pickled(error)
        except Exception as error:  # a preset of another package's raises what it likes: this configuration has failed
            return b"e" + serving.pickled(RunError(f"{type(error).__name__}: {error}"))

    serving.serve(pipe, answer)
