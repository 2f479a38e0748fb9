# SPDX-License-Identifier: Apache-2.0
"""What a search may try on OpenVINO's devices."""

from __future__ import annotations

from onnx_multi_backend.engines.openvino import instructions
from onnx_multi_backend.presets.knobs import THREADS, Choice, Host, Knob, count_of


def precision_knob(host: Host) -> Knob:
    """The precisions below float32 that the device computes with by instructions of its own."""
    if host.device == "CPU":
        here = instructions.find()
        native = [] if here is None else [name for name, has in (("bf16", here.bf16), ("f16", here.fp16)) if has]
    else:
        native = ["f16"]
    return Knob("precision", tuple(Choice(name, {"precision": name}, float32=False) for name in native))


def property_knobs(host: Host) -> tuple[Knob, ...]:
    """OpenVINO's properties for the CPU.

    Source: https://docs.openvino.ai/2026/openvino-workflow/running-inference/inference-devices-and-modes/cpu-device.html
    Its ``CPU_DENORMALS_OPTIMIZATION`` is left out: it changes how the calling thread computes, and numpy with it.
    """
    if host.device != "CPU":
        return ()
    threads = tuple(Choice(count_of(n, "thread"), {"INFERENCE_NUM_THREADS": n}) for n in host.thread_counts)
    streams = tuple(Choice(count_of(n, "stream"), {"NUM_STREAMS": n}) for n in host.thread_counts)
    hyper_threads = (Choice("hyper-threads", {"ENABLE_HYPER_THREADING": True}),) if host.simultaneous else ()
    return (
        Knob(THREADS, threads),
        Knob(
            "hint",
            (Choice("hint: throughput", {"performance_hint": "THROUGHPUT"}),),
            ("latency", "memory"),
        ),
        Knob("streams", streams, ("throughput",)),
        Knob(
            "pinning",
            (
                Choice("threads pinned", {"ENABLE_CPU_PINNING": True}),
                Choice("threads not pinned", {"ENABLE_CPU_PINNING": False}),
            ),
            ("latency", "throughput"),
        ),
        Knob("hyper-threading", hyper_threads, ("latency", "throughput")),
    )
