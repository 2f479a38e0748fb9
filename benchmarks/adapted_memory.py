# SPDX-License-Identifier: Apache-2.0
"""What preparing an adapted model above 2 GiB costs in memory, against the engine alone on a model it takes as it is.

The weights are zeros in a sparse file beside the model, so that nothing has to be downloaded. The adapted model differs
from the plain one in a single node, which the engine lacks or is not trusted with. Each figure is the peak resident set
of a process of its own; the engine's own figure is the reference.

Run it: ``python benchmarks/adapted_memory.py [ort|openvino] [GiB]``.
"""

from __future__ import annotations

import importlib.metadata
import platform
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from onnx import ModelProto, TensorProto, helper

COLUMNS = 16_384
LAYERS = 5


def save(folder: Path, size: float, *, adapted: bool) -> Path:
    """Write a chain of MatMuls with `size` GiB of weights, and the node to be rewritten where one is wanted."""
    rows = int(size * 2**30 / LAYERS / 4 / COLUMNS)
    graph = helper.make_graph([], "large", [_value("x", [1, rows])], [_value("y", [LAYERS, COLUMNS])])
    for i in range(LAYERS):
        tensor = graph.initializer.add(name=f"w{i}", data_type=TensorProto.FLOAT, dims=[rows, COLUMNS])
        tensor.data_location = TensorProto.EXTERNAL
        length = rows * COLUMNS * 4
        for key, value in {"location": "weights.bin", "offset": i * length, "length": length}.items():
            tensor.external_data.add(key=key, value=str(value))
        graph.node.append(helper.make_node("MatMul", ["x", f"w{i}"], [f"m{i}"]))
    graph.node.append(helper.make_node("Concat", [f"m{i}" for i in range(LAYERS)], ["all"], axis=0))
    if adapted:  # ONNX Runtime refuses this Mod when it runs, OpenVINO lacks CumProd
        graph.node.append(helper.make_node("Mod", ["all", "two"], ["rest"]))
        graph.node.append(helper.make_node("CumProd", ["rest", "axis"], ["y"]))
        graph.initializer.add(name="two", data_type=TensorProto.FLOAT, float_data=[2])
        graph.initializer.add(name="axis", data_type=TensorProto.INT64, int64_data=[0])
    else:
        graph.node.append(helper.make_node("Relu", ["all"], ["y"]))
    model: ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28 if adapted else 20)])
    model.ir_version = 10
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(LAYERS * rows * COLUMNS * 4)
    path = folder / ("adapted.onnx" if adapted else "plain.onnx")
    path.write_bytes(model.SerializeToString())
    return path


def _value(name: str, shape: list[int]) -> object:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def engine_alone(engine: str, path: str) -> object:
    """The engine's own way to load a model."""
    if engine == "ort":
        import onnxruntime

        return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    import openvino

    core = openvino.Core()
    return core.compile_model(core.read_model(path), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def ours(engine: str, path: str) -> object:
    """Ours, which must have rewritten the model."""
    import onnx_multi_backend as omb

    prepared = omb.prepare(path, preset={"ort": "OrtCpu", "openvino": "Openvino"}[engine])
    if "adapted" in path:
        assert {"floor_mod", "cum_prod"} & {a.pass_name for a in prepared.adaptations}, prepared.adaptations
    return prepared


def child(way: str, engine: str, path: str) -> None:
    """Load once and print the peak in MiB."""
    held = {"alone": engine_alone, "ours": ours}[way](engine, path)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    del held


def peak(way: str, engine: str, path: Path) -> float:
    """The peak of a fresh process, in MiB."""
    command = [sys.executable, __file__, "--child", way, engine, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main() -> None:
    """Measure and print."""
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:])
        return
    engine = sys.argv[1] if len(sys.argv) > 1 else "ort"
    size = float(sys.argv[2]) if len(sys.argv) > 2 else 2.2
    with tempfile.TemporaryDirectory() as folder:
        plain, adapted = (save(Path(folder), size, adapted=a) for a in (False, True))
        reference = peak("alone", engine, plain)
        package = {"ort": "onnxruntime", "openvino": "openvino"}[engine]
        print(f"{package} {importlib.metadata.version(package)}, {platform.machine()} {platform.system()}, {size} GiB")
        for label, value in {
            "the engine alone, plain model": reference,
            "ours, plain model": peak("ours", engine, plain),
            "ours, adapted model": peak("ours", engine, adapted),
        }.items():
            print(f"{label:32} {value:9.0f} MiB {value / reference:7.3f}")


if __name__ == "__main__":
    main()
