# SPDX-License-Identifier: Apache-2.0
"""Models with an If, or what is read as one, whose shapes are known only at run time.

Where such a run needs more memory than those before it, OpenVINO (2026.4) lets what reads the result of the If read memory that is not
written yet. The same run again is right, on the same stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto

from onnx_multi_backend.engines.openvino.session import OpenvinoSession
from onnx_multi_backend.engines.session import Feeds, Value
from onnx_multi_backend.models.graph_walk import all_nodes

#: One stream has all memory; with several, nobody knows which one runs.
PROPERTIES = {"NUM_STREAMS": 1}

#: A SequenceAt of a position that is known only at run time chooses among the elements.
_READ_AS_IF = ("If", "SequenceAt")

#: Shapes that are remembered at most.
_MOST = 1024


def branches(model: ModelProto, read: Any, shapes: Mapping[str, tuple[int, ...]] | None) -> bool:
    """Whether a model, and what OpenVINO read of it, is such a one; `shapes` fixes its inputs."""
    if shapes is not None or not any(node.op_type in _READ_AS_IF for node in all_nodes(model)):
        return False
    return any(port.partial_shape.is_dynamic for port in (*read.inputs, *read.outputs))


class BranchingSession(OpenvinoSession):
    """Makes each first run with inputs of other shapes twice."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._seen: set[tuple[tuple[str, tuple[int, ...]], ...]] = set()

    def run(self, feeds: Feeds, run_options: Mapping[str, Any] | None) -> Sequence[Value]:
        """Run once, or twice."""
        shapes = tuple((name, np.shape(value)) for name, value in feeds.items())
        if shapes not in self._seen:
            super().run(feeds, run_options)
            if len(self._seen) >= _MOST:
                self._seen.clear()
            self._seen.add(shapes)
        return super().run(feeds, run_options)
