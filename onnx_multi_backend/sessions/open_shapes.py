# SPDX-License-Identifier: Apache-2.0
"""A model that an engine refuses while sizes of its inputs are open, as where a squeezed axis decides how many axes there are.

It is compiled for the shapes of a run; where these do not decide which branches run, for its single integers too, such as a sample rate.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from onnx_multi_backend.engines.session import Built, Feeds, Value
from onnx_multi_backend.engines.target import Target
from onnx_multi_backend.errors import OpenShapesError, UnsupportedModelError
from onnx_multi_backend.sessions.by_shape import SessionsByShape, logged, shapes_of
from onnx_multi_backend.sessions.maker import Maker

_CURE = (
    "The sizes of its inputs are open, and it may run once they are known: pass input_example=inputs, and the model is compiled for "
    "the shapes of each run; or fix them with input_shapes={name: shape}."
)


def with_cure(refusal: UnsupportedModelError) -> OpenShapesError:
    """The engine's refusal, and what to do about it."""
    return OpenShapesError(f"{refusal} {_CURE}", operators=refusal.operators, reasons=refusal.reasons)


class SessionsForRuns(SessionsByShape):
    """The sessions for the inputs seen last. Safe from several threads.

    Parameters
    ----------
    make : Maker
    target : Target
    who : str
        Begins a line in the log for each compilation.
    """

    def __init__(self, make: Maker, target: Target, who: str) -> None:
        super().__init__(logged(partial(make.for_shapes, target), who))
        self._takes_values = False

    def for_feeds(self, feeds: Feeds) -> Built:
        """The session for these inputs, by the engine's names.

        Raises
        ------
        UnsupportedModelError
            The engine cannot run the model with them.
        """
        values = {name: int(value.item()) for name, value in feeds.items() if _decides(value)}
        if not self._takes_values:
            try:
                return super().for_feeds(feeds)
            except UnsupportedModelError:
                if not values:
                    raise
        built = self.get(shapes_of(feeds), values)
        self._takes_values = True
        return built


def _decides(value: Value) -> bool:
    """Whether an input is a single integer or boolean."""
    return isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "iub"
