# SPDX-License-Identifier: Apache-2.0
"""A model from the cache is the model itself: same results to the bit, same answers, same errors."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.cache.conftest import SIDE, X, large
from onnx_multi_backend.presets import base as preset_module

Model = str | bytes | onnx.ModelProto
Prepare = Callable[..., omb.PreparedModel]

BFLOAT16 = onnx.helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture(params=["cold", "warm"])
def prepare(
    request: pytest.FixtureRequest, engine: type[omb.Preset], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Prepare:
    """Prepares a model without a cache; or from one, where loading the model would fail the test."""

    def cold(model: Model, **options: Any) -> omb.PreparedModel:
        return engine.prepare(model, cache_dir=False, **options)

    def warm(model: Model, **options: Any) -> omb.PreparedModel:
        engine.prepare(model, cache_dir=cache, **options)
        with monkeypatch.context() as patch, warnings.catch_warnings():
            patch.setattr(preset_module, "load", lambda model: pytest.fail("the model was loaded"))
            warnings.simplefilter("error", omb.CacheWarning)
            return engine.prepare(model, cache_dir=cache, **options)

    return cold if request.param == "cold" else warm


def saved(folder: Path, model: onnx.ModelProto, **options: Any) -> str:
    path = folder / "model.onnx"
    onnx.save(model, path, **options)
    return str(path)


def bfloat16() -> onnx.ModelProto:
    """An input that ONNX Runtime takes as float32 only."""
    return models.one_node(
        "Cast",
        [models.tensor("x", (1, SIDE), TensorProto.BFLOAT16)],
        [models.tensor("y", (1, SIDE))],
        to=TensorProto.FLOAT,
    )


def narrow() -> onnx.ModelProto:
    """An output that ONNX Runtime makes in another type."""
    return models.one_node(
        "Cast",
        [models.tensor("x", (1, SIDE))],
        [models.tensor("y", (1, SIDE), TensorProto.BFLOAT16)],
        to=TensorProto.BFLOAT16,
    )


def rewritten() -> onnx.ModelProto:
    """A type that ONNX Runtime lacks for this operator."""
    x, y = (models.tensor(name, (1, SIDE), TensorProto.BFLOAT16) for name in "xy")
    return models.one_node("Abs", [x], [y])


def rewritten_for_openvino() -> onnx.ModelProto:
    """An operator that OpenVINO lacks."""
    nodes = [models.node("CumProd", ["x", "axis"], ["y"])]
    x, y = (models.tensor(name, (1, SIDE)) for name in "xy")
    return models.model(nodes, [x], [y], initializers={"axis": np.int64(1)}, opsets={"": 26})


def passed_on() -> onnx.ModelProto:
    """An input that is an output too, and one that nothing uses."""
    nodes = [models.node("Relu", ["x"], ["y"])]
    return models.model(
        nodes,
        [models.tensor("x", (1, SIDE)), models.tensor("unused", (2,))],
        [models.tensor("y", (1, SIDE)), models.tensor("x", (1, SIDE))],
    )


def dropped() -> onnx.ModelProto:
    """A node that OpenVINO drops; of the port's two names its export keeps the other one."""
    x, y = (models.tensor(name, (), TensorProto.DOUBLE) for name in "xy")
    return models.one_node("Einsum", [x], [y], equation="->")


def with_default() -> onnx.ModelProto:
    return models.model(
        [models.node("Add", ["x", "d"], ["y"])],
        [models.tensor("x", ("N", SIDE)), models.tensor("d", (SIDE,))],
        [models.tensor("y", ("N", SIDE))],
        initializers={"d": np.arange(SIDE, dtype=np.float32)},
    )


def branches() -> onnx.ModelProto:
    """Subgraphs with large weights of their own."""
    weights = np.linspace(-1, 1, SIDE, dtype=np.float32)

    def branch(op_type: str) -> onnx.GraphProto:
        return onnx.helper.make_graph(
            [models.node(op_type, ["x", f"w_{op_type}"], [f"y_{op_type}"])],
            op_type,
            [],
            [models.tensor(f"y_{op_type}", (1, SIDE))],
            [onnx.numpy_helper.from_array(weights, f"w_{op_type}")],
        )

    nodes = [
        models.node("ReduceSum", ["x"], ["s"], keepdims=0),
        models.node("Greater", ["s", "zero"], ["c"]),
        models.node("If", ["c"], ["y"], then_branch=branch("Add"), else_branch=branch("Sub")),
    ]
    return models.model(
        nodes,
        [models.tensor("x", (1, SIDE))],
        [models.tensor("y", (1, SIDE))],
        initializers={"zero": np.float32(0)},
    )


MODELS: dict[str, tuple[Callable[[], onnx.ModelProto], Any]] = {
    "weights": (large, X),
    "an input of another type": (bfloat16, X.astype(BFLOAT16)),
    "an output of another type": (narrow, X),
    "rewritten": (rewritten, X.astype(BFLOAT16)),
    "rewritten for OpenVINO": (rewritten_for_openvino, X),
    "passed on": (passed_on, [X, np.zeros(2, np.float32)]),
    "a node that passes a value on": (dropped, np.array(5.0)),
    "a default": (with_default, X),
}


def values(results: Any) -> list[tuple[Any, ...]]:
    return [(r.dtype, r.shape, r.tobytes()) for r in results]


@pytest.mark.parametrize("given", ["path", "bytes", "proto", "external data", "external data, rewritten"])
def test_every_form_of_a_model_is_the_same_warm(
    prepare: Prepare, engine: type[omb.Preset], tmp_path: Path, given: str
) -> None:
    model = large()
    forms: dict[str, Callable[[], Model]] = {
        "path": lambda: saved(tmp_path, model),
        "bytes": model.SerializeToString,
        "proto": lambda: model,
        "external data": lambda: saved(tmp_path, model, save_as_external_data=True, location="w", size_threshold=0),
    }
    if "rewritten" in given:  # it goes to the engine without its folder
        model.graph.node.add().CopyFrom(models.node("Abs", ["h"], ["z"]))
        for value, name in ((model.graph.input, "h"), (model.graph.output, "z")):
            value.append(models.tensor(name, (1, SIDE), TensorProto.BFLOAT16))
    x: Any = [X, X.astype(BFLOAT16)] if "rewritten" in given else X
    source = forms[given.partition(",")[0]]()
    plain, made = engine.prepare(source, cache_dir=False), prepare(source)
    assert values(made.run(x)) == values(plain.run(x))
    assert repr(made) == repr(plain)


@pytest.mark.parametrize("name", MODELS)
def test_every_kind_of_model_is_the_same_warm(prepare: Prepare, engine: type[omb.Preset], name: str) -> None:
    make, x = MODELS[name]
    plain, made = engine.prepare(make(), cache_dir=False), prepare(make())
    assert values(made.run(x)) == values(plain.run(x))
    assert (made.get_inputs(), made.get_outputs()) == (plain.get_inputs(), plain.get_outputs())
    assert (made.adaptations, made.placement()) == (plain.adaptations, plain.placement())
    assert (made.device, made.provider, repr(made)) == (plain.device, plain.provider, repr(plain))


def test_the_same_inputs_are_refused_with_the_same_words(prepare: Prepare, engine: type[omb.Preset]) -> None:
    plain, made = engine.prepare(large(), cache_dir=False), prepare(large())
    for wrong in (X.astype(np.float64), X[:, 1:], [X, X], {"z": X}, "text"):
        words = []
        for rep in (plain, made):
            with pytest.raises(omb.InputError) as caught:
                rep.run(wrong)
            words.append(str(caught.value))
        assert words[0] == words[1]


def test_it_can_be_pickled(prepare: Prepare, tmp_path: Path) -> None:
    made = prepare(saved(tmp_path, large()))
    assert values(pickle.loads(pickle.dumps(made)).run(X)) == values(made.run(X))


def test_an_example_and_an_option_are_heeded(prepare: Prepare) -> None:
    made = prepare(large(), input_example=X)
    assert values(made.run(X)) == values(made.run([X]))
    with pytest.raises(omb.InputError):
        prepare(large(), input_example=X[:, 1:])


def test_bound_runs_and_streams(prepare: Prepare) -> None:
    made = prepare(large())
    expected = values(made.run(X))
    bound = made.bind(X.copy())
    bound.run()
    assert values(bound.outputs.values()) == expected
    assert [values(r) for r in made.run_many([X] * 5)] == [expected] * 5


def test_threads(prepare: Prepare) -> None:
    made = prepare(large())
    xs = [X * np.float32(i) for i in range(64)]
    expected = [values(made.run(x)) for x in xs]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda x: values(made.run(x)), xs)) == expected


@pytest.mark.parametrize("engine", ["OrtCpu"], indirect=True)
def test_branches(prepare: Prepare, engine: type[omb.Preset]) -> None:
    plain, made = engine.prepare(branches(), cache_dir=False), prepare(branches())
    for x in (X + 1, X - 1):
        assert values(made.run(x)) == values(plain.run(x))


@pytest.mark.parametrize("engine", ["OrtCpu"], indirect=True)
def test_other_providers(prepare: Prepare, tmp_path: Path) -> None:
    path = saved(tmp_path, large())
    made = prepare(path)
    expected = values(made.run(X))
    assert made.get_providers() == ["CPUExecutionProvider"]
    made.set_providers(["CPUExecutionProvider"], [{}])
    assert values(made.run(X)) == expected
    assert values(pickle.loads(pickle.dumps(made)).run(X)) == expected


@pytest.mark.parametrize("engine", ["OrtCpu"], indirect=True)
def test_strings_and_sequences(prepare: Prepare) -> None:
    nodes = [
        models.node("StringConcat", ["x", "x"], ["xx"]),
        models.node("SequenceConstruct", ["x", "xx"], ["y"]),
    ]
    x = models.tensor("x", (2,), TensorProto.STRING)
    y = onnx.helper.make_tensor_sequence_value_info("y", TensorProto.STRING, None)
    made = prepare(models.model(nodes, [x], [y]))
    (sequence,) = made.run([np.array(["a", "b"], dtype=object)])
    assert [v.tolist() for v in sequence] == [["a", "b"], ["aa", "bb"]]
    assert made.get_outputs()[0].onnx_type == "seq(tensor(string))"
