# SPDX-License-Identifier: Apache-2.0
"""What is measured. Each measure is a function of its own, and runs in a process of its own."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import onnx_multi_backend as omb
from benchmarks import models
from benchmarks.checking import checking
from benchmarks.isolation import isolation
from benchmarks.precision import precision
from benchmarks.quota import quota
from benchmarks.startup import startup
from benchmarks.timing import row
from onnx_multi_backend.measuring.clock import Call, in_turns

Rows = list[dict[str, Any]]

PROPERTIES = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}


def ort_session(model: str | bytes) -> Any:
    """ONNX Runtime's session, as one makes it without this package."""
    import onnxruntime

    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def openvino_model(model: Path | bytes) -> Any:
    """OpenVINO's compiled model, as one makes it without this package."""
    import openvino

    core = openvino.Core()
    return core.compile_model(core.read_model(model), "CPU", PROPERTIES)


def call_ort(folder: Path) -> Rows:
    """The price of a call on ONNX Runtime."""
    import onnxruntime.backend

    model, x = models.relu(), np.ones((1, 64), np.float32)
    session = ort_session(model.SerializeToString())
    theirs = onnxruntime.backend.prepare(session)
    ours = omb.prepare(model, device="CPU")
    bound = ours.bind(x.copy())
    figures = in_turns(
        {
            "onnxruntime.backend rep.run": lambda: theirs.run(x),
            "InferenceSession.run": lambda: session.run(["y"], {"x": x}),
            "rep.run, an array": lambda: ours.run(x),
            "rep.run, a list": lambda: ours.run([x]),
            "rep.run, a mapping": lambda: ours.run({"x": x}),
            "bound.run": bound.run,
        },
        rounds=41,
        repeat=2000,
        warm_up=2000,
    )
    runs = [n for n in figures if n.startswith("rep.run")]
    return [
        *(row("a call, OrtCpu, Relu [1, 64]", n, "onnxruntime.backend rep.run", figures, 0.9) for n in runs),
        row("a call, OrtCpu, Relu [1, 64]", "bound.run", "InferenceSession.run", figures, 0.65),
    ]


def call_openvino(folder: Path) -> Rows:
    """The price of a call on OpenVINO."""
    model, x = models.relu(), np.ones((1, 64), np.float32)
    compiled = openvino_model(model.SerializeToString())
    ours = omb.prepare(model, device="OPENVINO")
    bound = ours.bind(x.copy())
    figures = in_turns(
        {
            "compiled_model(x)": lambda: compiled(x),
            "rep.run, an array": lambda: ours.run(x),
            "rep.run, a mapping": lambda: ours.run({"x": x}),
            "bound.run": bound.run,
        },
        rounds=41,
        repeat=1000,
        warm_up=1000,
    )
    return [
        row("a call, Openvino, Relu [1, 64]", name, "compiled_model(x)", figures, limit)
        for name, limit in (("rep.run, an array", 0.48), ("rep.run, a mapping", 0.48), ("bound.run", 0.36))
    ]


Builder = Callable[[], dict[str, Call]]


def _runs(*builders: Builder) -> dict[str, list[float]]:
    """Seconds a run of sessions that are built anew four times, each first in turn: where its memory lies makes a difference."""
    pooled: dict[str, list[float]] = {}
    for i in range(4):
        order = builders[i % len(builders) :] + builders[: i % len(builders)]
        calls = {name: call for build in order for name, call in build().items()}
        for name, figures in in_turns(calls, rounds=14, repeat=4, warm_up=3, settle=True).items():
            pooled.setdefault(name, []).extend(figures)
    return pooled


def _run_real(preset: str, theirs: Builder) -> Rows:
    path, x = models.recognition(), models.recognition_input()

    def ours() -> dict[str, Call]:
        return {"rep.run": partial(omb.prepare(path, preset=preset, cache_dir=False).run, x)}

    figures = _runs(theirs, ours)
    fastest = min(figures.keys() - {"rep.run"}, key=lambda name: statistics.median(figures[name]))
    return [row(f"a run, {preset}, PP-OCRv4 rec", "rep.run", fastest, figures, 1.02)]


def _ort_ways(session: Any) -> dict[str, Call]:
    x, name = models.recognition_input(), session.get_inputs()[0].name
    binding = session.io_binding()
    binding.bind_cpu_input(name, x)
    binding.bind_output(session.get_outputs()[0].name)
    return {
        "InferenceSession.run": partial(session.run, None, {name: x}),
        "run_with_iobinding": partial(session.run_with_iobinding, binding),
    }


def run_ort(folder: Path) -> Rows:
    """A real model on ONNX Runtime, against the fastest of its own ways."""
    return _run_real("OrtCpu", lambda: _ort_ways(ort_session(str(models.recognition()))))


def run_openvino(folder: Path) -> Rows:
    """A real model on OpenVINO, against the fastest of its own ways."""
    x = models.recognition_input()

    def theirs() -> dict[str, Call]:
        compiled = openvino_model(models.recognition())
        request = compiled.create_infer_request()
        return {
            "compiled_model(x)": partial(compiled, x),
            "InferRequest.infer, all shared": partial(request.infer, [x], share_inputs=True, share_outputs=True),
        }

    return _run_real("Openvino", theirs)


def run_ort_openvino(folder: Path) -> Rows:
    """A real model on the OpenVINO execution provider, where it is installed."""
    import onnxruntime

    if not omb.availability()["OrtOpenvino"].usable:
        return []
    providers = [("OpenVINOExecutionProvider", {"device_type": "CPU"})]
    path = str(models.recognition())
    return _run_real("OrtOpenvino", lambda: _ort_ways(onnxruntime.InferenceSession(path, providers=providers)))


def _both(folder: Path) -> Iterator[tuple[str, Path, np.ndarray]]:
    yield "PP-OCRv4 rec", models.recognition(), models.recognition_input()
    yield "54 MB", models.large(folder), models.large_input()


def _cold(folder: Path, preset: str, bare: Callable[[Path], Any]) -> Rows:
    rows = []
    for name, path, _ in _both(folder):
        calls: dict[str, Call] = {
            "the bare session": lambda path=path: bare(path),
            "prepare(path)": lambda path=path: omb.prepare(path, preset=preset, cache_dir=False),
        }
        figures = in_turns(calls, rounds=41, warm_up=2)
        rows.append(row(f"cold, {preset}, {name}", "prepare(path)", "the bare session", figures, 1.2))
    return rows


def cold_ort(folder: Path) -> Rows:
    """The first prepare on ONNX Runtime."""
    return _cold(folder, "OrtCpu", lambda path: ort_session(str(path)))


def cold_openvino(folder: Path) -> Rows:
    """The first prepare on OpenVINO."""
    return _cold(folder, "Openvino", openvino_model)


def _warm(folder: Path, preset: str, limits: Mapping[str, float]) -> Rows:
    rows = []
    for name, path, x in _both(folder):
        cache = folder / f"cache-{preset}"
        omb.prepare(path, preset=preset, cache_dir=str(cache))
        calls: dict[str, Call] = {
            "cold": lambda path=path: omb.prepare(path, preset=preset, cache_dir=False),
            "warm": lambda path=path, cache=cache: omb.prepare(path, preset=preset, cache_dir=str(cache)),
        }
        figures = in_turns(calls, rounds=15, warm_up=2)
        rows.append(row(f"prepare, {preset}, {name}", "warm", "cold", figures, limits[name]))
        cold, warm = calls["cold"](), calls["warm"]()
        assert all(np.array_equal(a, b) for a, b in zip(cold.run(x), warm.run(x), strict=True)), "other results"
        del cold, warm
        figures = _runs(
            lambda calls=calls, x=x: {"cold": partial(calls["cold"]().run, x)},
            lambda calls=calls, x=x: {"warm": partial(calls["warm"]().run, x)},
        )
        rows.append(row(f"a run, {preset}, {name}", "warm", "cold", figures, 1.03))
    return rows


def warm_ort(folder: Path) -> Rows:
    """A prepare from the cache on ONNX Runtime, and the runs after it."""
    return _warm(folder, "OrtCpu", {"PP-OCRv4 rec": 0.75, "54 MB": 1.0})


def warm_openvino(folder: Path) -> Rows:
    """A prepare from the cache on OpenVINO, and the runs after it."""
    return _warm(folder, "Openvino", {"PP-OCRv4 rec": 0.3, "54 MB": 0.3})


def _many(preset: str, limit: float) -> Rows:
    x, count = models.recognition_input(), 24
    rep = omb.prepare(models.recognition(), preset=preset, cache_dir=False)
    calls: dict[str, Call] = {
        "a loop of run": lambda: [rep.run(x) for _ in range(count)],
        "run_many": lambda: list(rep.run_many([x] * count)),
    }
    figures = in_turns(calls, rounds=9, warm_up=1)
    return [row(f"{count} batches, {preset}, PP-OCRv4 rec", "run_many", "a loop of run", figures, limit)]


def many_openvino(folder: Path) -> Rows:
    """A stream of batches on OpenVINO."""
    return _many("Openvino", 1 / 1.15)


def many_ort(folder: Path) -> Rows:
    """A stream of batches on ONNX Runtime."""
    return _many("OrtCpu", 1.0)


_PEAK = """
import sys
import onnxruntime, openvino
import onnx_multi_backend as omb
from benchmarks import measures, models
preset, who, path = sys.argv[1:]
for model in (models.relu().SerializeToString(), path):
    if who == "ours":
        kept = omb.prepare(model, preset=preset, cache_dir=False)
    elif preset == "OrtCpu":
        kept = measures.ort_session(model)
    else:
        kept = measures.openvino_model(model)
with open("/proc/self/status") as status:  # ru_maxrss would begin with the parent's
    print(next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""


def memory(folder: Path) -> Rows:
    """The peak of the resident memory, in a process of its own for each figure, all of the same imports."""
    path, rows = models.large(folder), []
    for preset in ("OrtCpu", "Openvino"):
        peaks: dict[str, list[float]] = {"ours": [], "bare": []}
        for _ in range(5):
            for who, found in peaks.items():
                command = [sys.executable, "-c", _PEAK, preset, who, str(path)]
                printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found.append(float(printed) * 1024)
        rows.append({**row(f"peak memory, {preset}, 54 MB", "ours", "bare", peaks, 1.1), "unit": "B"})
    return rows


MEASURES: dict[str, Callable[[Path], Rows]] = {
    f.__name__: f
    for f in (
        call_ort,
        call_openvino,
        run_ort,
        run_openvino,
        run_ort_openvino,
        cold_ort,
        cold_openvino,
        warm_ort,
        warm_openvino,
        many_openvino,
        many_ort,
        memory,
        isolation,
        startup,
        checking,
        precision,
        quota,
    )
}
