# SPDX-License-Identifier: Apache-2.0
"""Reports made by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.differences import Difference, Limits
from onnx_multi_backend.tuning.measurement import Measurement, Outcome, Placement
from onnx_multi_backend.tuning.report import Machine, Report

MACHINE = Machine(
    "2026-03-01T12:00:00+00:00",
    "AMD EPYC 9V74 (AuthenticAMD, family 25, model 17): avx2 avx512f avx512_vnni avx512_bf16",
    4,
    "the process may use 4 of 8",
    {"onnx": "1.23.0", "onnxruntime": "1.31.0", "openvino": "2026.4.0"},
)


def rounds(median: float, *, count: int = 12, runs: int = 20, noise: float = 0.01, seed: int = 0) -> Any:
    """Times of runs, by rounds: noise between rounds, and a tail within each of them."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        level = median * float(np.exp(noise * generator.standard_normal()))
        found.append(tuple(map(float, level * (1 + 0.05 * generator.exponential(1.0, runs) ** 1.5))))
    return tuple(found)


def measured(
    name: str,
    median: float | None = 0.01,
    *,
    preset: str = "OrtCpu",
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    noise: float = 0.01,
    count: int = 12,
    **others: Any,
) -> Measurement:
    """A configuration; without a median it was not timed."""
    if median is not None:
        others = {
            "latency": rounds(median, seed=seed, noise=noise, count=count),
            "prepare": 0.31,
            "prepare_cached": 0.042,
            "first_run": 2 * median,
            "memory": 123_456_789,
            "placement": Placement({"CPUExecutionProvider": 10}, 0.0),
            "difference": Difference(1.5e-6, 2e-7, 1.0),
        } | others
    return Measurement(name, Setup(preset, None, options or {}), **others)


def failed(name: str, reason: str, **others: Any) -> Measurement:
    """One that does not run."""
    return measured(name, None, outcome=Outcome.FAILED, reason=reason, **others)


def report(measurements: Sequence[Measurement], **others: Any) -> Report:
    """A report of `bench`, or with ``chosen`` one of `tune`."""
    return Report(
        **{
            "kind": "tune" if others.get("chosen") else "bench",
            "model": "resnet50.onnx",
            "model_digest": "ab" * 16,
            "machine": MACHINE,
            "inputs": {"x": "float32 [1, 3, 224, 224]"},
            "examples": 4,
            "random": False,
            "reference": "OrtCpu, optimizations off",
            "limits": Limits(),
            "objective": "latency",
            "budget": float("inf"),
            "seconds": 34.5,
            "measurements": tuple(measurements),
        }
        | others
    )


def bench() -> Report:
    """Five presets, one of which fails."""
    reason = (
        "Openvino cannot run the model: node 'loop_3' (ai.onnx.Loop) has a body that it refuses.\n" + "detail " * 60
    )
    return report(
        [
            measured("OrtCpu", 0.0121, seed=1, placement=Placement({"CPUExecutionProvider": 53}, 0.0)),
            measured("Openvino", 0.0093, preset="Openvino", seed=2, difference=Difference(3e-5, 4e-6, 0.9999999)),
            measured("OrtOpenvino", 0.0098, preset="OrtOpenvino", seed=3, placement=Placement({"OpenVINOExecutionProvider": 50, "CPUExecutionProvider": 3}, 3 / 53, 0.12)),
            measured("OrtTensorrtInt8QDQ", 0.031, preset="OrtTensorrtInt8QDQ", seed=4, memory=None),
            failed("OrtOpenvinoInt8", reason, preset="OrtOpenvinoInt8", at=12.0),
        ],
        random=True,
    )  # fmt: skip


def tune(count: int = 40) -> Report:
    """A search: defaults first, then options; some are slower, some inaccurate, some not allowed, some fail."""
    generator = np.random.default_rng(7)
    found = [
        measured("OrtCpu", 0.0121, seed=1, at=1.0),
        measured("Openvino", 0.0093, preset="Openvino", seed=2, at=4.0, difference=Difference(3e-5, 4e-6, 0.9999999)),
        failed("OrtOpenvino", "DeviceUnavailableError: no device", preset="OrtOpenvino", at=6.0),
    ]
    outcomes = [
        Outcome.MEASURED,
        Outcome.NOT_BETTER,
        Outcome.NOT_TIMED,
        Outcome.INACCURATE,
        Outcome.NOT_ALLOWED,
        Outcome.FAILED,
    ]
    for i in range(count - len(found) - 1):
        outcome, preset = outcomes[i % 6], ("OrtCpu", "Openvino")[i % 2]
        options: dict[str, Any] = {"threads": 1 + i % 4, "trial": i}
        name = f"{preset}, {1 + i % 4} threads, trial {i}"
        at = 8.0 + 3 * i
        if outcome is Outcome.FAILED:
            found.append(
                failed(name, f"RunError: the engine failed in node {i}", preset=preset, options=options, at=at)
            )
            continue
        wide = outcome in (Outcome.INACCURATE, Outcome.NOT_ALLOWED)
        error = float(10 ** generator.uniform(-3, -1)) if wide else float(10 ** generator.uniform(-6.5, -4.5))
        median = float(generator.uniform(0.0022, 0.005) if wide else generator.uniform(0.006, 0.02))
        found.append(
            measured(
                name,
                median,
                preset=preset,
                options=options,
                seed=i + 10,
                at=at,
                count=3 if outcome is Outcome.NOT_BETTER else 12,
                outcome=outcome,
                float32=not wide,
                difference=Difference(0.0 if i % 12 == 0 else error, error / 10, 1 - error / 50),
                reason={Outcome.NOT_BETTER: "clearly slower after 3 rounds", Outcome.INACCURATE: f"the largest error is {error:.2g}, more than float32 noise", Outcome.NOT_ALLOWED: "it computes in bf16"}.get(outcome, ""),
            )
        )  # fmt: skip
    best = measured(
        "Openvino, 4 threads, LATENCY", 0.0052, preset="Openvino", seed=99, at=8.0 + 3 * count, options={"num_threads": 4, "performance_hint": "LATENCY"}
    )  # fmt: skip
    return report([*found, best], chosen=best.name, seconds=8.0 + 3 * count + 12, budget=180.0)


def changed(made: Report, name: str, **others: Any) -> Report:
    """A report in which one configuration is another."""
    return replace(made, measurements=tuple(replace(m, **others) if m.name == name else m for m in made.measurements))
