# SPDX-License-Identifier: Apache-2.0
"""Random operators of ONNX Runtime's domain, in the forms that its optimizers write."""

from __future__ import annotations

import random

from backend_test.search.graphs.contrib import attentions, layers, quantized
from backend_test.search.graphs.contrib.draft import Draft
from backend_test.search.graphs.generate import Made

_MAKERS = (*attentions.MAKERS, *layers.MAKERS, *quantized.MAKERS)


def random_contrib(rng: random.Random) -> Made:
    """Draw a model; the same random numbers make the same."""
    draft = Draft(rng)
    rng.choice(_MAKERS)(draft)
    return draft.made()
