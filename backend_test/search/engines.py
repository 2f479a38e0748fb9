# SPDX-License-Identifier: Apache-2.0
"""The bare engines, the references, and a preset: each is asked the same."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from backend_test.search.answers import REFUSED, RESULT, UNTYPED, Answer, describe, raised_in

Feeds = Mapping[str, Any]
#: Says in which part of its work an engine is: ``prepare``, then ``run``.
Note = Callable[[str], None]


def _nothing(place: str) -> None:
    pass


def _attempt(prepare: Callable[[], Callable[[Feeds], list[Any]]], feeds: Sequence[Feeds], note: Note) -> Answer:
    """Prepare once, and run with each of the inputs; whatever is raised is an answer."""
    answer, place = Answer(RESULT), "prepare"
    try:
        note(place)
        run = prepare()
        place = "run"
        for fed in feeds:
            note(place)
            answer.runs.append(run(fed))
    except MemoryError as error:
        return Answer(REFUSED, answer.runs, describe(error), place)
    except Exception as error:  # an engine may raise anything
        return Answer(REFUSED, answer.runs, describe(error), place)
    return answer


# ONNX Runtime.

#: What a provider needs to compute float32 in float32.
IN_FLOAT32 = {
    "CUDAExecutionProvider": {"use_tf32": "0"},
    "OpenVINOExecutionProvider": {"device_type": "CPU", "precision": "FP32"},
}


def ort_session(model: bytes, provider: str, level: Any = None) -> Any:
    """ONNX Runtime's own session, on one thread."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    if level is not None:
        options.graph_optimization_level = level
    return ort.InferenceSession(model, options, providers=[(provider, IN_FLOAT32.get(provider, {}))])


def _ort(model: bytes, provider: str, level: Any = None) -> Callable[[Feeds], list[Any]]:
    from onnx_multi_backend.engines.ort import values

    session = ort_session(model, provider, level)
    inputs = [(i.name, i.type) for i in session.get_inputs()]
    outputs = [o.name for o in session.get_outputs()]
    exotic = any(values.exotic_type(t) for _, t in inputs) or any(
        values.exotic_type(o.type) for o in session.get_outputs()
    )

    def run(feeds: Feeds) -> list[Any]:
        if not exotic:
            return list(session.run(None, {name: _as_array(feeds[name]) for name, _ in inputs}))
        given = {n: values.to_ort_value(feeds[n], values.exotic_type(t)) for n, t in inputs}
        return [values.to_array(value) for value in session.run_with_ort_values(outputs, given)]

    return run


def _as_array(value: Any) -> Any:
    """ONNX Runtime takes no scalar of numpy's where it takes an array without axes."""
    return np.asarray(value) if isinstance(value, np.generic) else value


def ort_cpu(model: bytes, feeds: Sequence[Feeds], note: Note = _nothing) -> Answer:
    """ONNX Runtime's CPU provider as users have it."""
    return _attempt(lambda: _ort(model, "CPUExecutionProvider"), feeds, note)


def ort_cuda(model: bytes, feeds: Sequence[Feeds], note: Note = _nothing) -> Answer:
    """ONNX Runtime's CUDA provider as users have it, in float32."""
    return _attempt(lambda: _ort(model, "CUDAExecutionProvider"), feeds, note)


def ort_openvino(model: bytes, feeds: Sequence[Feeds], note: Note = _nothing) -> Answer:
    """ONNX Runtime's OpenVINO provider as users have it, in float32."""
    return _attempt(lambda: _ort(model, "OpenVINOExecutionProvider"), feeds, note)


def ort_unoptimized(model: bytes, feeds: Sequence[Feeds], note: Note = _nothing) -> Answer:
    """ONNX Runtime's CPU provider on the graph as it stands."""

    def prepare() -> Callable[[Feeds], list[Any]]:
        import onnxruntime as ort

        return _ort(model, "CPUExecutionProvider", ort.GraphOptimizationLevel.ORT_DISABLE_ALL)

    return _attempt(prepare, feeds, note)


# OpenVINO.


@functools.cache
def _core() -> Any:
    import openvino as ov

    return ov.Core()


def openvino(model: bytes, feeds: Sequence[Feeds], note: Note = _nothing) -> Answer:
    """OpenVINO on the CPU, in float32."""

    def prepare() -> Callable[[Feeds], list[Any]]:
        import openvino as ov

        from onnx_multi_backend.engines.openvino import values

        core = _core()
        config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
        compiled = core.compile_model(core.read_model(model), "CPU", config)
        declared = {o.name: o for o in ModelProto.FromString(model).graph.output}
        request = compiled.create_infer_request()

        def run(fed: Feeds) -> list[Any]:
            for port in compiled.inputs:
                name = next((n for n in port.get_names() if n in fed), None)
                if name is None:
                    raise ValueError(f"no input is called {port.get_names()}")
                array = fed[name]
                if array.dtype == object:
                    request.set_tensor(port, ov.Tensor(np.array(array, dtype=str)))
                    continue
                request.set_tensor(port, values.to_tensor(array, port.get_element_type())[0])
            request.infer()
            found = []
            for position, (name, value) in enumerate(declared.items()):
                port = next((p for p in compiled.outputs if name in p.get_names()), None) or compiled.outputs[position]
                kind = value.type.tensor_type.elem_type
                tensor = request.get_tensor(port)
                if kind == onnx.TensorProto.STRING:
                    found.append(np.array(tensor.str_data, object))
                    continue
                found.append(values.to_array(tensor, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))))
            return found

        return run

    return _attempt(prepare, feeds, note)


def reference(model: bytes, feeds: Sequence[Feeds], note: Note = _nothing) -> Answer:
    """ONNX's reference evaluator."""

    def prepare() -> Callable[[Feeds], list[Any]]:
        proto = ModelProto.FromString(model)
        evaluator = ReferenceEvaluator(proto)
        kinds = [o.type.tensor_type.elem_type for o in proto.graph.output]
        return lambda fed: [
            _as_declared(made, kind) for made, kind in zip(evaluator.run(None, dict(fed)), kinds, strict=True)
        ]

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _attempt(prepare, feeds, note)


def _as_declared(made: Any, kind: int) -> Any:
    """An output in its declared type: the evaluator makes int64 of reduced int32, whose low bits are the result."""
    if kind and isinstance(made, np.ndarray) and made.dtype == np.int64:
        wanted = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind))
        return made.astype(wanted) if wanted.kind in "iu" else made
    return made


#: The engine under each preset.
BARE: dict[str, Callable[..., Answer]] = {
    "OrtCpu": ort_cpu,
    "OrtCuda": ort_cuda,
    "Openvino": openvino,
    "OrtOpenvino": ort_openvino,
    "OrtOpenvinoFloat": ort_openvino,
    "OrtOpenvinoFull": ort_openvino,
}


def find_preset(name: str) -> Any:
    """A preset's class by its name, or by the dotted path of a class."""
    if "." in name:
        import importlib

        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)
    import onnx_multi_backend as omb

    return getattr(omb, f"{name}Backend")


def bare_of(name: str) -> Callable[..., Answer]:
    """The engine under a preset; a class from elsewhere says which one as `bare`."""
    if name in BARE:
        return BARE[name]
    return BARE[find_preset(name).bare] if "." in name else ort_cpu


class Kept:
    """What preparing a model came to, for the next who asks.

    Attributes
    ----------
    outcome : PreparedModel, Exception or None
        None before it is prepared.
    """

    def __init__(self) -> None:
        self.outcome: Any = None

    def of(self, backend: Any) -> Any:
        """A backend that prepares nothing: it returns or raises that."""
        outcome = self.outcome
        if outcome is None:
            return backend

        def prepare(cls: Any, *args: Any, **options: Any) -> Any:
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return type(backend.__name__, (backend,), {"prepare": classmethod(prepare)})


def preset(name: str, model: bytes, feeds: Sequence[Feeds], note: Note = _nothing, kept: Kept | None = None) -> Answer:
    """A preset of this package: what it raises is `refused` where it is typed, else `untyped`.

    Parameters
    ----------
    kept : Kept, optional
        Gets what preparing comes to.
    """
    from onnx_multi_backend.errors import OnnxMultiBackendError

    backend = find_preset(name)
    kept = kept or Kept()
    answer, place = Answer(RESULT), "prepare"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            note(place)
            try:
                prepared = kept.outcome = backend.prepare(model)
            except Exception as error:
                kept.outcome = error
                raise
            place = "run"
            for fed in feeds:
                note(place)
                answer.runs.append(list(prepared.run(dict(fed))))
        except OnnxMultiBackendError as error:
            answer = Answer(REFUSED, answer.runs, describe(error), place)
        except Exception as error:  # that is what is looked for
            answer = Answer(UNTYPED, answer.runs, describe(error), place, where=raised_in(error))
    answer.warnings = sorted({f"{w.category.__name__}: {w.message}" for w in caught if _is_ours(w.category)})
    return answer


def compatibility(name: str, model: bytes, note: Note = _nothing, kept: Kept | None = None) -> Answer:
    """What a preset says of a model's compatibility; it never raises.

    Parameters
    ----------
    kept : Kept, optional
        What preparing the model came to: then it is not prepared once more.
    """
    backend = (kept or Kept()).of(find_preset(name))
    note("prepare")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = backend.compatibility(model)
        except Exception as error:  # that is what is looked for
            return Answer(UNTYPED, [], describe(error), "compatibility", where=raised_in(error))
    return Answer(RESULT if found else REFUSED, [], "; ".join(getattr(found, "reasons", ()))[:600])


def _is_ours(category: type[Warning]) -> bool:
    return category.__module__.startswith("onnx_multi_backend")
