# SPDX-License-Identifier: Apache-2.0
"""What `BackendTester` answers with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class OperatorSupport:
    """What became of the models that have one operator.

    Where a model has several operators, all of them share what became of it: models of one node tell most.

    Attributes
    ----------
    domain : str
        ``ai.onnx`` for the default domain.
    op_type : str
    models : int
        How many of the models have the operator, in subgraphs and local functions too.
    compatible : int or None
        For how many of these `is_compatible` said yes; None where the backend has no `is_compatible`.
    preparable : int
        For how many of these `prepare` returned something.
    errors : mapping of str to int
        ``Type: first line of the message`` of what was raised, and how often; the most frequent first.
    """

    domain: str
    op_type: str
    models: int = 0
    compatible: int | None = None
    preparable: int = 0
    errors: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        compatible = "" if self.compatible is None else f", {self.compatible} compatible"
        errors = "".join(f"; {count} x {error}" for error, count in self.errors.items())
        models = "1 model" if self.models == 1 else f"{self.models} models"
        return f"{self.domain}.{self.op_type}: {models}{compatible}, {self.preparable} preparable{errors}"


@dataclass(frozen=True, slots=True)
class DeviceSupport:
    """What a backend says of a device, and what it does.

    Attributes
    ----------
    claimed : bool
        What `supports_device` answered; False where it raised.
    prepares : bool
        Whether a model of one node was prepared and run on the device, with the right result.
    error : str
        Why ``claimed`` or ``prepares`` is False, where something tells; empty otherwise.
    """

    claimed: bool
    prepares: bool
    error: str = ""

    @property
    def honest(self) -> bool:
        """Whether the backend does what it says."""
        return self.claimed == self.prepares

    def __str__(self) -> str:
        claimed = "claimed" if self.claimed else "not claimed"
        prepares = "runs" if self.prepares else "does not run"
        return f"{claimed}, {prepares}{'' if self.honest else ': NOT HONEST'}{f' ({self.error})' if self.error else ''}"


@dataclass(frozen=True, slots=True)
class Timing:
    """Wall times of one call, in milliseconds."""

    count: int
    median_ms: float
    min_ms: float
    max_ms: float

    def __str__(self) -> str:
        return f"{self.median_ms:.3f} ms ({self.min_ms:.3f} to {self.max_ms:.3f}, {self.count} times)"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """`run_model`, which prepares each time, against `run` of a model that was prepared once."""

    run_model: Timing
    run: Timing

    @property
    def ratio(self) -> float:
        """How many times longer `run_model` takes, by the medians."""
        return self.run_model.median_ms / self.run.median_ms

    def __str__(self) -> str:
        return f"run_model {self.run_model}, run {self.run}: {self.ratio:.1f} times"
