# SPDX-License-Identifier: Apache-2.0
"""The process that a lane of its own runs in."""

from __future__ import annotations

import pickle

from onnx_multi_backend.isolation import serving
from onnx_multi_backend.tuning.lane import Lane

#: What a lane may be asked.
_CALLS = frozenset(
    {
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
        except Exception as error:  # whatever it is, the process that asked has to hear of it
            return b"e" + serving.pickled(error)

    serving.serve(pipe, answer)
