# SPDX-License-Identifier: Apache-2.0
"""What a search may try on a preset: options with the values that are worth trying, as data."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from onnx_multi_backend.presets.options import Option

#: What a configuration may be tuned for.
OBJECTIVES = ("latency", "throughput", "memory")

#: The knob for the number of threads.
THREADS = "threads"


class Choice(NamedTuple):
    """One value of a knob.

    Attributes
    ----------
    label : str
        In words, ``1 thread``.
    options : mapping of str to value
        What it adds to the preset's options; a mapping among them (``session_options``) is added to entry by entry.
    float32 : bool
        Whether everything is computed at least as exactly as the model says.
    """

    label: str
    options: Mapping[str, Any]
    float32: bool = True


@dataclass(frozen=True)
class Knob:
    """Choices of which a configuration has one, or none for the default.

    Attributes
    ----------
    name : str
    choices : tuple of Choice
    objectives : tuple of str
        What it may help with.
    """

    name: str
    choices: tuple[Choice, ...]
    objectives: tuple[str, ...] = OBJECTIVES


class Host(NamedTuple):
    """What the values that are worth trying depend on.

    Attributes
    ----------
    cpus : int
        Those that the process may use.
    device : str
        The kind of the device, ``CPU``.
    simultaneous : bool
        Whether a core runs several threads at once: engines then take fewer threads than there are CPUs.
    """

    cpus: int
    device: str
    simultaneous: bool

    @property
    def thread_counts(self) -> list[int]:
        """Numbers of threads that are worth trying: all CPUs, where an engine does not take them by itself, and halves of them."""
        counts, left = [], self.cpus if self.simultaneous else self.cpus // 2
        while left >= 1:
            counts.append(left)
            left //= 2
        return counts


def thread_knob(host: Host, option: str) -> Knob:
    """A knob for a number of threads."""
    return Knob(THREADS, tuple(Choice(count_of(n, "thread"), {option: n}) for n in host.thread_counts))


def count_of(count: int, noun: str) -> str:
    """``1 thread``, ``2 threads``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def session_option(label: str, name: str, value: Any, *, float32: bool = True) -> Choice:
    """One of ONNX Runtime's session options."""
    return Choice(label, {"session_options": {name: value}}, float32)


def ort_cpu_knobs(host: Host) -> tuple[Knob, ...]:
    """What ONNX Runtime's CPU execution provider can be told.

    Source: https://onnxruntime.ai/docs/performance/tune-performance/ and onnxruntime_session_options_config_keys.h. Its
    ``session.set_denormal_as_zero`` is left out: it changes how the calling thread computes, and numpy with it, for as long as the process
    lives.
    """
    knobs = [
        thread_knob(host, "intra_op_num_threads"),
        Knob(
            "spinning",
            (session_option("threads do not spin", "session.intra_op.allow_spinning", "0"),),
            ("latency", "throughput"),
        ),
        Knob(
            "graph optimizations",
            (
                session_option("graph optimizations: extended", "graph_optimization_level", "ORT_ENABLE_EXTENDED"),
                session_option("graph optimizations: basic", "graph_optimization_level", "ORT_ENABLE_BASIC"),
            ),
        ),
        Knob("memory reuse", (session_option("no memory reuse", "enable_mem_reuse", value=False),), ("latency",)),
        Knob("memory pattern", (session_option("no memory pattern", "enable_mem_pattern", value=False),)),
        Knob("arena", (session_option("no arena", "enable_cpu_mem_arena", value=False),), ("memory",)),
        Knob("prepacking", (session_option("no prepacking", "session.disable_prepacking", "1"),), ("memory",)),
    ]
    if host.cpus > 1:
        knobs.append(
            Knob(
                "parallel execution",
                (Choice("nodes in parallel", {"inter_op_num_threads": 2}),),
                ("latency", "throughput"),
            )
        )
    if platform.machine().lower() in ("aarch64", "arm64"):
        name = "mlas.enable_gemm_fastmath_arm64_bfloat16"
        knobs.append(Knob("precision", (session_option("bf16", name, "1", float32=False),)))
    return tuple(knobs)


def provider_knob(name: str, *choices: tuple[str, Mapping[str, Any], bool], option: str = "provider_options") -> Knob:
    """A knob made of an execution provider's own options: each choice its label, options, and whether float32 stays."""
    return Knob(name, tuple(Choice(label, {option: dict(chosen)}, exact) for label, chosen, exact in choices))


def listed(options: tuple[Option, ...]) -> Iterator[Knob]:
    """A knob for each option that lists its values: what is known of a preset that says nothing else."""
    for option in options:
        if option.choices is not None:
            others = [value for value in option.choices if value != option.default]
            yield Knob(option.name, tuple(Choice(f"{option.name}={value}", {option.name: value}) for value in others))


def merged(options: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """Options with others added, mappings among them entry by entry."""
    made = dict(options)
    for name, value in added.items():
        held = made.get(name)
        made[name] = {**held, **value} if isinstance(held, Mapping) and isinstance(value, Mapping) else value
    return made
