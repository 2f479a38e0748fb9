# SPDX-License-Identifier: Apache-2.0
"""What code that is written for ONNX Runtime's InferenceSession calls is there, on every preset."""

from __future__ import annotations

import copy
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto
from onnx.helper import make_optional_type_proto, make_sequence_type_proto, make_tensor_type_proto, make_value_info
from onnx.numpy_helper import from_array

import onnx_multi_backend as omb
from backend_test.unit import models
from backend_test.unit.conftest import without_the_plugin
from onnx_multi_backend import inference_session
from onnx_multi_backend.engines.ort import providers as ort_providers
from onnx_multi_backend.presets.answers import Availability

X = np.float32([[-1, 2, 3]])
CPU = "CPUExecutionProvider"


def two_outputs() -> ModelProto:
    made = models.model(
        [models.node("Relu", ["x"], ["y"]), models.node("Neg", ["x"], ["a/z"])],
        [models.tensor("x", ["N", 3])],
        [models.tensor("y", ["N", 3]), models.tensor("a/z", ["N", 3])],
    )
    made.producer_name, made.model_version, made.doc_string = "the tests", 7, "two outputs"
    made.metadata_props.add(key="character", value="abc")
    return made


def test_run_takes_names_of_outputs_first(preset: type[omb.Preset]) -> None:
    rep = preset.prepare(two_outputs())
    y, z = rep.run(None, {"x": X})
    np.testing.assert_array_equal(y, np.maximum(X, 0))
    np.testing.assert_array_equal(z, -X)
    (only,) = rep.run(["a/z"], {"x": X})
    np.testing.assert_array_equal(only, -X)
    swapped = rep.run(["a/z", "y"], [X])
    assert list(swapped._asdict()) == ["a/z", "y"]
    np.testing.assert_array_equal(swapped["y"], np.maximum(X, 0))
    with pytest.raises(omb.OptionError, match=r"no output 'q'; it has 'y', 'a/z'"):
        rep.run(["q"], {"x": X})
    with pytest.raises(omb.InputError):
        rep.run(None, {"q": X})
    with pytest.raises(omb.OptionError, match=r"Pass several inputs as one list: run\(\[a, b\]\)"):
        rep.run(X, X)


def test_options_of_a_run_come_last(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(two_outputs())
    for results in (
        rep.run(None, {"x": X}, {"log_severity_level": 3}),
        rep.run({"x": X}, run_options={"log_severity_level": 3}),
    ):
        np.testing.assert_array_equal(results[0], np.maximum(X, 0))
    with pytest.raises(omb.OptionError):
        rep.run(X, run_options={"no_such_option": 1})


def test_outputs_have_their_names(engine: type[omb.Preset]) -> None:
    results = engine.prepare(two_outputs()).run(X)
    assert list(results._asdict()) == ["y", "a/z"]  # type: ignore[attr-defined]


def test_a_model_says_what_it_is(preset: type[omb.Preset], tmp_path: Path) -> None:
    for _ in range(2):  # the second from the cache, where the preset has one
        meta = preset.prepare(two_outputs(), cache_dir=tmp_path).get_modelmeta()
        assert (meta.producer_name, meta.version, meta.description) == ("the tests", 7, "two outputs")
        assert meta.custom_metadata_map == {"character": "abc"}
        assert meta.graph_name == "tiny"


def test_an_input_has_its_type_as_onnx_runtime_writes_it(engine: type[omb.Preset]) -> None:
    (info,) = engine.prepare(two_outputs()).get_inputs()
    assert (info.name, info.type, info.shape) == ("x", "tensor(float)", ("N", 3))


@pytest.mark.parametrize("isolate", [False, True])
def test_a_profile_is_written(ort_cpu: type[omb.Preset], tmp_path: Path, isolate: bool) -> None:
    options = {"enable_profiling": True, "profile_file_prefix": str(tmp_path / "profile")}
    rep = ort_cpu.prepare(two_outputs(), session_options=options, isolate=isolate)
    rep.run(X)
    events = json.loads(Path(rep.end_profiling()).read_text())
    assert any(event.get("args", {}).get("op_name") == "Relu" for event in events)


def test_openvino_has_no_profile(openvino: type[omb.Preset]) -> None:
    with pytest.raises(omb.OptionError, match="does not run on ONNX Runtime"):
        openvino.prepare(two_outputs()).end_profiling()


def test_session_options_go_beside_those_of_the_preset(ort_cpu: type[omb.Preset]) -> None:
    rep = ort_cpu.prepare(
        two_outputs(), inter_op_num_threads=2, session_options={"graph_optimization_level": "ORT_DISABLE_ALL"}
    )
    set_up = rep._session.native.get_session_options()  # type: ignore[attr-defined]
    assert (set_up.graph_optimization_level.name, set_up.inter_op_num_threads) == ("ORT_DISABLE_ALL", 2)
    with pytest.raises(omb.OptionError, match=r"inter_op_num_threads.*contradict"):
        ort_cpu.prepare(two_outputs(), inter_op_num_threads=2, session_options={"inter_op_num_threads": 3})
    with pytest.raises(omb.OptionError, match="no session option 'no_such'"):
        ort_cpu.prepare(two_outputs(), session_options={"no_such": 1})
    import onnxruntime as ort

    with pytest.raises(omb.OptionError, match="as a mapping"):
        ort_cpu.prepare(two_outputs(), inter_op_num_threads=2, session_options=ort.SessionOptions())


def test_session_options_serve_several_models(
    ort_cpu: type[omb.Preset], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ort = pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    path.write_bytes(two_outputs().SerializeToString())
    given = ort.SessionOptions()
    for model in (two_outputs(), path, str(path)):
        rep = ort_cpu.prepare(model, session_options=given)
        assert [node.op_type for node in rep.placement()] == ["Relu", "Neg"]
    omb.InferenceSession(path, given)
    assert "already exists" not in capfd.readouterr().err


@pytest.mark.parametrize(
    "entry", [("a." + "b" * 5000, "1"), ("a.b", "1" * 50000), ("a.\ud800", "1"), ("a.b", "\ud800")]
)
def test_an_entry_that_is_not_taken_is_told(ort_cpu: type[omb.Preset], entry: tuple[str, str]) -> None:
    rep = ort_cpu.prepare(two_outputs())
    with pytest.raises(omb.OptionError, match=r"run option 'a\.\S{1,90} is not taken: \w+"):
        rep.run(X, run_options=dict([entry]))
    with pytest.raises(omb.OptionError, match=r"session option 'a\.\S{1,90} is not taken: \w+"):
        ort_cpu.prepare(two_outputs(), session_options=dict([entry]))


def custom() -> ModelProto:
    return models.model(
        [models.node("StringUpper", ["x"], ["y"], domain="ai.onnx.contrib")],
        [models.tensor("x", ["N"], 8)],
        [models.tensor("y", ["N"], 8)],
        opsets={"": 18, "ai.onnx.contrib": 1},
    )


def test_custom_operators_come_with_a_library(engine: type[omb.Preset], tmp_path: Path) -> None:
    with pytest.raises(
        omb.UnsupportedModelError, match=r"ai\.onnx\.contrib come.*custom_ops_library.*get_library_path"
    ):
        engine.prepare(custom())
    if engine.name == "OrtCpu":
        with pytest.raises(omb.OptionError, match=r"custom_ops_library.*cannot be loaded"):
            engine.prepare(custom(), session_options={"custom_ops_library": tmp_path / "none.so"})


@pytest.mark.parametrize("library", [5, None, [5], b"a.so", ["a.so", None]])
def test_a_library_is_a_path(ort_cpu: type[omb.Preset], library: Any) -> None:
    with pytest.raises(omb.OptionTypeError, match="'custom_ops_library' is a path or a list of paths; .* was given"):
        ort_cpu.prepare(two_outputs(), session_options={"custom_ops_library": library})


def test_the_library_of_onnxruntime_extensions(ort_cpu: type[omb.Preset]) -> None:
    extensions = pytest.importorskip("onnxruntime_extensions")
    rep = ort_cpu.prepare(custom(), session_options={"custom_ops_library": extensions.get_library_path()})
    assert rep.run([np.array(["ab"], object)])[0].tolist() == ["AB"]


@pytest.mark.parametrize("given", ["bytes", "path"])
def test_a_session_is_used_as_onnx_runtimes(
    preset: type[omb.Preset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    without_the_plugin(preset)  # ONNX Runtime adds it to the caller's SessionOptions alone
    ort = pytest.importorskip("onnxruntime")
    path = tmp_path / "model.onnx"
    path.write_bytes(two_outputs().SerializeToString())
    monkeypatch.setenv("ONNX_MULTI_BACKEND_PRESET", preset.name)
    model: Any = path.read_bytes() if given == "bytes" else str(path)
    ours = omb.InferenceSession(model, ort.SessionOptions(), providers=[CPU])
    bare = ort.InferenceSession(model, ort.SessionOptions(), providers=[CPU])
    for names in (None, ["a/z"], []):
        results = ours.run(names, {"x": X})
        right = bare.run(names, {"x": X})
        assert isinstance(results, list)
        assert len(results) == len(right)
        for one, other in zip(results, right, strict=True):
            np.testing.assert_array_equal(one, other)
    for mine, theirs in zip(
        (*ours.get_inputs(), *ours.get_outputs()), (*bare.get_inputs(), *bare.get_outputs()), strict=True
    ):
        assert (mine.name, mine.type, mine.shape) == (theirs.name, theirs.type, theirs.shape)
    assert ours.get_modelmeta().custom_metadata_map == bare.get_modelmeta().custom_metadata_map
    assert ours.prepared.preset == preset.name
    assert ours.get_providers()
    assert ours.get_provider_options().keys() == set(ours.get_providers())


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("io_binding", r"Use session\.prepared\.bind"),
        ("run_with_iobinding", r"Use session\.prepared\.bind"),
        ("run_async", r"Use session\.prepared\.run_many"),
        ("get_provider_graph_assignment_info", r"Use session\.prepared\.placement"),
        ("no_such_method", "'no_such_method'"),
    ],
)
def test_a_method_that_is_not_there_names_what_to_use(ort_cpu: type[omb.Preset], name: str, instead: str) -> None:
    session = omb.InferenceSession(two_outputs().SerializeToString())
    assert not hasattr(session, name)
    with pytest.raises(AttributeError, match=f"has no attribute {name!r}") as caught:
        getattr(session, name)
    assert re.search(instead, str(caught.value))
    assert ("Use" in str(caught.value)) == (name in inference_session._INSTEAD)
    assert hasattr(session.prepared, instead.rpartition(".")[2]) or name == "no_such_method"


def test_every_method_is_there_or_names_what_to_use(ort_cpu: type[omb.Preset]) -> None:
    ort = pytest.importorskip("onnxruntime")
    session = omb.InferenceSession(two_outputs().SerializeToString())
    without = {  # since ONNX Runtime 1.24
        "create_ortvalue_from_shape_and_type",
        "get_input_epdevices",
        "get_input_memory_infos",
        "get_output_memory_infos",
        "get_tuning_results",
        "release_captured_graph",
        "set_ep_dynamic_options",
        "set_tuning_results",
    }
    theirs = {name for name in dir(ort.InferenceSession) if not name.startswith("_")}
    assert {name for name in theirs if not hasattr(session, name)} <= without | inference_session._INSTEAD.keys()
    assert not any(hasattr(session, name) for name in inference_session._INSTEAD)


def test_values_are_described_as_onnx_runtime_does(ort_cpu: type[omb.Preset]) -> None:
    ort = pytest.importorskip("onnxruntime")
    shapes = {"fixed": [2, 3], "open": [None, 2, "N"], "scalar": [], "any": None}
    types = {name: make_tensor_type_proto(1, shape) for name, shape in shapes.items()}
    types |= {"rows": make_sequence_type_proto(types["fixed"]), "maybe": make_optional_type_proto(types["fixed"])}
    types["some"] = make_optional_type_proto(types["rows"])
    model = models.model(
        [models.node("Identity", [name], [f"{name}_out"], name=name) for name in types],
        [make_value_info(name, kind) for name, kind in types.items()],
        [make_value_info(f"{name}_out", kind) for name, kind in types.items()],
        opsets={"": 16},
    ).SerializeToString()
    ours, bare = omb.InferenceSession(model), ort.InferenceSession(model, providers=[CPU])
    for mine, theirs in zip(
        (*ours.get_inputs(), *ours.get_outputs()), (*bare.get_inputs(), *bare.get_outputs()), strict=True
    ):
        assert str(mine) == str(theirs)
        assert mine.shape == theirs.shape
    (first, *_) = ours.get_inputs()
    first.shape[0] = 7
    assert first.shape == [2, 3]


def test_inputs_with_a_default_are_listed_apart(ort_cpu: type[omb.Preset]) -> None:
    ort = pytest.importorskip("onnxruntime")
    vector = models.tensor("x", (1, 3)), models.tensor("d", (1, 3))
    model = models.one_node("Add", list(vector), [models.tensor("y", (1, 3))])
    model.graph.initializer.append(from_array(X, "d"))
    data = model.SerializeToString()
    ours, bare = omb.InferenceSession(data), ort.InferenceSession(data, providers=[CPU])
    assert list(map(str, ours.get_inputs())) == list(map(str, bare.get_inputs()))
    listed = ours.get_overridable_initializers()
    assert list(map(str, listed)) == list(map(str, bare.get_overridable_initializers()))
    assert [info.name for info in listed] == ["d"]
    assert ours.run(None, {"x": X, listed[0].name: X * 0})[0].tolist() == X.tolist()


@pytest.mark.parametrize("given", [None, [X], X, "x"])
def test_inputs_that_are_no_mapping_are_refused(preset: type[omb.Preset], given: Any) -> None:
    session = omb.InferenceSession(two_outputs().SerializeToString(), preset=preset.name)
    words = f"input_feed maps the names of inputs to arrays; {type(given).__name__} was given. Pass run(None, {{'x': ...}})."
    with pytest.raises(omb.InputError, match=re.escape(words)):
        session.run(None, given)


def test_the_first_provider_that_can_be_used_decides(ort_cpu: type[omb.Preset]) -> None:
    model = two_outputs().SerializeToString()
    assert omb.InferenceSession(model).prepared.preset == "OrtCpu"
    options = [{}, {"arena_extend_strategy": "kSameAsRequested"}]
    wanted = ["NoSuchExecutionProvider", CPU]
    with pytest.warns(
        omb.FallbackWarning, match="CPUExecutionProvider is used, because NoSuchExecutionProvider is not"
    ):
        session = omb.InferenceSession(model, providers=wanted, provider_options=options)
    assert session.prepared.preset == "OrtCpu"
    pairs = [("CPUExecutionProvider", {"use_arena": 1})]
    assert omb.InferenceSession(model, providers=pairs).get_providers() == [CPU]
    with pytest.raises(omb.OptionError, match="1 mappings for 2 providers"):
        omb.InferenceSession(model, providers=wanted, provider_options=[{}])
    with pytest.raises(omb.OptionError):
        omb.InferenceSession(model, preset="NoSuchPreset")


@pytest.mark.parametrize("given", [5, X], ids=["number", "array"])
def test_what_chooses_a_preset_is_of_the_right_type(ort_cpu: type[omb.Preset], given: Any) -> None:
    model = two_outputs().SerializeToString()
    with pytest.raises(omb.OptionTypeError, match="A preset is given by its name"):
        omb.InferenceSession(model, preset=given)
    with pytest.raises(omb.OptionTypeError, match="Execution providers are a list of names"):
        omb.InferenceSession(model, providers=given)
    session = omb.InferenceSession(model, providers=[], provider_options=[])
    for call in (omb.InferenceSession, lambda _, *given: session.prepared.set_providers(*given[1:])):
        with pytest.raises(omb.OptionTypeError, match="provider_options is a list of mappings, one a provider"):
            call(model, None, [CPU], given)


def test_a_provider_that_cannot_be_used_is_named_with_the_reason(
    ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    unusable = Availability(False, (), "onnxruntime", "no driver was found")
    monkeypatch.setattr(omb.OrtCudaBackend, "availability", lambda: unusable)
    with pytest.warns(omb.FallbackWarning, match="CUDAExecutionProvider is not usable: no driver was found") as warned:
        session = omb.InferenceSession(two_outputs().SerializeToString(), providers=["CUDAExecutionProvider", CPU])
    assert session.prepared.preset == "OrtCpu"
    assert warned[0].filename == __file__


def test_a_provider_without_a_preset_of_its_own_counts_in_its_place(
    ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ort_providers, "why_unusable", lambda provider, device: None)
    named = [("MyExecutionProvider", {}), (CPU, {})]
    assert inference_session._chosen(named) == ("Ort", {"provider_name": "MyExecutionProvider", "provider_options": {}})


def test_an_empty_variable_names_no_preset(ort_cpu: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONNX_MULTI_BACKEND_PRESET", "")
    assert omb.InferenceSession(two_outputs().SerializeToString(), providers=[CPU]).prepared.preset == "OrtCpu"


def test_a_session_is_pickled_without_objects_of_onnx_runtime(engine: type[omb.Preset]) -> None:
    ort = pytest.importorskip("onnxruntime")
    data = two_outputs().SerializeToString()
    again = pickle.loads(pickle.dumps(omb.InferenceSession(data, preset=engine.name)))
    np.testing.assert_array_equal(again.run(["a/z"], {"x": X})[0], -X)
    session = omb.InferenceSession(data, ort.SessionOptions(), preset=engine.name)
    with pytest.raises(omb.OptionTypeError, match="session cannot be pickled: sess_options is an onnxruntime.Session"):
        pickle.dumps(session)
    np.testing.assert_array_equal(copy.copy(session).run(["a/z"], {"x": X})[0], -X)


@pytest.mark.filterwarnings("error")
def test_azures_provider_is_passed_over_as_it_computes_nothing(ort_cpu: type[omb.Preset]) -> None:
    data = two_outputs().SerializeToString()
    session = omb.InferenceSession(data, providers=["AzureExecutionProvider", CPU])
    assert session.prepared.preset == "OrtCpu"


def test_onnx_runtimes_name_may_be_replaced(preset: type[omb.Preset], monkeypatch: pytest.MonkeyPatch) -> None:
    ort = pytest.importorskip("onnxruntime")
    monkeypatch.setenv("ONNX_MULTI_BACKEND_PRESET", preset.name)
    monkeypatch.setattr(ort, "InferenceSession", omb.InferenceSession)
    (y,) = ort.InferenceSession(two_outputs().SerializeToString(), providers=[CPU]).run(["y"], {"x": X})
    np.testing.assert_array_equal(y, np.maximum(X, 0))


def test_a_list_stands_for_an_array(preset: type[omb.Preset]) -> None:
    ort = pytest.importorskip("onnxruntime")
    for model, given in ((two_outputs(), X.tolist()), (two_outputs(), [X[0]]), (two_outputs(), [[1, 2, 3]])):
        data = model.SerializeToString()
        right = ort.InferenceSession(data, providers=[CPU]).run(None, {"x": given})
        found = omb.InferenceSession(data, preset=preset.name).run(None, {"x": given})
        for one, other in zip(found, right, strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(omb.InputError, match="'x' is a list that is not an array of float32"):
        omb.InferenceSession(two_outputs().SerializeToString(), preset=preset.name).run(None, {"x": [[1, 2], [3]]})
