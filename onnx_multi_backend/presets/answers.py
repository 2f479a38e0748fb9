# SPDX-License-Identifier: Apache-2.0
"""What a preset answers when it is asked: can it be used here, can it run a model?"""

from __future__ import annotations

from dataclasses import dataclass

from onnx_multi_backend.adapt import Adaptation
from onnx_multi_backend.engines.placement import NodePlacement


@dataclass(frozen=True)
class Compatibility:
    """Whether a preset can run a model, and what would happen to it.

    Attributes
    ----------
    ok : bool
        Also the truth value.
    reasons : tuple of str
        Why not: one line a cause, naming node, operator and cause.
    adaptations : tuple of Adaptation
    placement : tuple of NodePlacement
    """

    ok: bool
    reasons: tuple[str, ...] = ()
    adaptations: tuple[Adaptation, ...] = ()
    placement: tuple[NodePlacement, ...] = ()

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class Availability:
    """Whether a preset can be used here.

    Attributes
    ----------
    usable : bool
    devices : tuple of str
        The devices of this host that it can run on, the default first.
    engine : str
        The engine's package and version, for example ``onnxruntime 1.31.1``; empty when it is not installed. A plugin's
        stands behind it: ``onnxruntime 1.31.1, onnxruntime-ep-openvino 1.8.1 (plugin)``.
    reason, cure : str
        Why it is not usable and what to do; empty when it is.
    """

    usable: bool
    devices: tuple[str, ...]
    engine: str
    reason: str = ""
    cure: str = ""

    @property
    def packages(self) -> dict[str, str]:
        """The engine's packages and their versions, the one that computes last."""
        parts = [part.split() for part in self.engine.split(", ") if part]
        return {words[0]: words[1] for words in parts if len(words) > 1}

    @property
    def is_plugin(self) -> bool:
        """Whether a plugin execution provider computes."""
        return self.engine.endswith("(plugin)")
