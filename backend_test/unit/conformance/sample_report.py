# SPDX-License-Identifier: Apache-2.0
"""A small handmade report: three backends of two environments, every label and every kind, and nothing that ran.

`OrtCpu` is as expected but for two results whose expectations are stale. `OrtOpenvino` is of another environment, and
its expectations have a problem. `onnxruntime.backend` tells nothing of where nodes ran, and has every way to fail.
"""

from __future__ import annotations

from onnx_multi_backend.conformance.case_facts import CaseFacts, OperatorUse
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.report.document import BackendRun, Report
from onnx_multi_backend.conformance.report.environment import Environment
from onnx_multi_backend.conformance.results import CaseResult, Change, PlacedNode
from onnx_multi_backend.host.processor import Processor

ENVIRONMENT = Environment(
    started="2026-11-21T12:32:17+00:00",
    command=("onnx-multi-backend", "conformance", "--preset", "OrtCpu", "--preset", "onnxruntime.backend"),
    python="3.11.7",
    platform="Linux-6.18-x86_64-with-glibc2.36",
    cpu="A Processor 9000",
    cores=2,
    packages={"numpy": "2.4.6", "onnx": "1.23.2", "onnxruntime": "1.31.1"},
    processor=Processor("AuthenticAMD", 26, 2, "A Processor 9000", frozenset({"sse4_2", "avx2", "avx512f"})),
)
OTHER_ENVIRONMENT = Environment(
    started="2026-11-20T08:00:00+00:00",
    command=("onnx-multi-backend", "conformance", "--preset", "OrtOpenvino"),
    python="3.12.4",
    platform="Windows-11-10.0.26100",
    cpu="Another Processor | 8 cores",
    cores=8,
    packages={"numpy": "2.4.6", "onnx": "1.23.2", "onnxruntime-openvino": "1.24.1", "openvino": "2026.4.1"},
)

#: An error that breaks what does not escape it: a table, a code span, HTML, and XML 1.0.
NASTY_ERROR = "AssertionError: a|b `c` <details> & \x1b[31mred\x00\nsecond line | of the error\n```\nthird"


def sample_report(*, interrupted: bool = False) -> Report:
    """Build the report."""
    backends = (
        _backend("OrtCpu", "OrtCpu", {"onnxruntime": "1.31.1"}, expectations="backend_test/expectations/ort_cpu.toml"),
        _backend(
            "OrtOpenvino",
            "OrtOpenvino",
            {"onnxruntime": "1.24.1", "openvino": "2026.4.1"},
            expectations="expectations/ort_openvino.toml",
            problems=("expectations/ort_openvino.toml: [[xfail]] number 3: no case is named 'test_|gone|_cpu'",),
            environment=OTHER_ENVIRONMENT,
        ),
        _backend("onnxruntime.backend", "", {"onnxruntime": "1.31.1"}),
    )
    return Report(ENVIRONMENT, {b.name: b for b in backends}, _cases(), dict(_MODELS), interrupted)


def _backend(
    name: str,
    preset: str,
    engines: dict[str, str],
    *,
    expectations: str = "",
    problems: tuple[str, ...] = (),
    environment: Environment = ENVIRONMENT,
) -> BackendRun:
    path = f"onnx_multi_backend.presets.{preset}" if preset else name
    options = {"threads": 1, "config": {"session.x": "1"}} if preset == "OrtOpenvino" else {}
    versions = {"onnx": "1.23.2", **engines}
    return BackendRun(name, path, preset, ("CPU",), options, versions, expectations, problems, environment)


def _use(op_type: str, since: int = 13, *, domain: str = "ai.onnx", top_level: bool = True) -> OperatorUse:
    attributes = {"axis": ("0", "1")} if op_type == "CumSum" else {}
    return OperatorUse(domain, op_type, since, top_level, attributes, ("tensor(float)",))


# In ONNX's order; the operators are those of ONNX's own models, the squeezenet's being fewer.
_MODELS = {
    "test_abs_cpu": CaseFacts("node", "test_abs", (_use("Abs"),)),
    "test_adam_cpu": CaseFacts("node", "test_adam", (_use("Adam", 1, domain="ai.onnx.preview.training"),)),
    "test_cumsum_1d_cpu": CaseFacts("node", "test_cumsum_1d", (_use("CumSum", 14),)),
    "test_if_cpu": CaseFacts("node", "test_if", (_use("Constant", 11, top_level=False), _use("If", 11))),
    "test_relu_cpu": CaseFacts("node", "test_relu", (_use("Relu", 14),)),
    "test_tan_cpu": CaseFacts("node", "test_tan", (_use("Tan", 22),)),
    "test_squeezenet_cpu": CaseFacts("real", "squeezenet_old", (_use("Conv", 1), _use("Relu", 6))),
    "test_single_relu_model_cpu": CaseFacts("simple", "SingleRelu", (_use("Relu", 6),)),
    "test_Linear_cpu": CaseFacts("pytorch-converted", "torch-jit-export", (_use("Gemm", 6),)),
    "test_operator_add_broadcast_cpu": CaseFacts("pytorch-operator", "torch-jit-export", (_use("Add", 6),)),
}

_CLAMPED = Change("ir_version", "", "IR version 14 to 13", "the engine reads IR versions up to 13")
_SPLIT = Change("dynamic_shape", "Relu_0", "shape fixed", "the engine compiles static shapes")


def _cases() -> tuple[CaseResult, ...]:
    pick = {
        "OrtCpu": [
            _result(Label.NATIVE, placed="CPUExecutionProvider"),
            _result(Label.UNSUPPORTED, reason="OrtCpu cannot run model 'test_adam': it lacks Adam."),
            _result(Label.XFAIL, reason="sums wrong [defect]", error="AssertionError: \nNot equal"),
            _result(Label.NATIVE, reason="all nodes folded at load"),
            _result(Label.ADAPTED, reason="ir_version", adaptations=(_CLAMPED,), placed="CPUExecutionProvider"),
            _result(
                Label.NATIVE,
                placed="CPUExecutionProvider",
                unexpected="unexpected pass (native): remove it from ort_cpu.toml: [[xfail]] number 1 (was | wrong)",
            ),
            _result(Label.NATIVE, placed="CPUExecutionProvider"),
            _result(
                Label.UNSUPPORTED,
                reason="it lacks Relu",
                unexpected="needs no expectation, it is unsupported: remove it from ort_cpu.toml: [[xfail]] number 2",
            ),
            _result(Label.NATIVE, placed="CPUExecutionProvider"),
            _result(Label.NATIVE, placed="CPUExecutionProvider"),
        ],
        "OrtOpenvino": [
            _result(Label.NATIVE, placed="OpenVINOExecutionProvider"),
            _result(Label.UNSUPPORTED, reason="OrtOpenvino cannot run model 'test_adam': it lacks Adam."),
            _result(Label.FALLBACK, reason="CumSum on CPUExecutionProvider", placed="CPUExecutionProvider"),
            _result(Label.SKIP, reason="kills the process [defect]"),
            _result(Label.ADAPTED, reason="ir_version, dynamic_shape", adaptations=(_CLAMPED, _SPLIT)),
            _result(Label.NATIVE, placed="OpenVINOExecutionProvider"),
            _result(Label.NATIVE, placed="OpenVINOExecutionProvider"),
            _result(Label.NATIVE, placed="OpenVINOExecutionProvider"),
            _result(Label.NATIVE, placed="OpenVINOExecutionProvider"),
            _result(Label.NATIVE, placed="OpenVINOExecutionProvider"),
        ],
        "onnxruntime.backend": [
            _result(Label.PASS),
            _result(Label.FAIL, error="Fail: Adam(-1) is not a registered function/op", unexpected="fail: Fail: Adam"),
            _result(Label.PASS),
            _result(Label.CRASH, error="signal 11\nlast words", unexpected="crash: signal 11"),
            _result(Label.PASS),
            _result(Label.FAIL, error=NASTY_ERROR, unexpected="fail: AssertionError: a|b `c`"),
            _result(Label.TIMEOUT, reason="stopped after 60 s", unexpected="timeout: stopped after 60 s"),
            _result(Label.PASS),
            _result(Label.SKIP, reason="skipped by the backend without a reason"),
            _result(Label.PASS),
        ],
    }
    return tuple(
        CaseResult(
            backend,
            name,
            facts.kind,
            made.label,
            made.reason,
            made.adaptations,
            tuple(n._replace(op_type=facts.operators[0].op_type) for n in made.placement),
            0.5 * position,
            made.error,
            made.unexpected,
        )
        for backend, results in pick.items()
        for position, ((name, facts), made) in enumerate(zip(_MODELS.items(), results, strict=True), 1)
    )


def _result(
    label: Label,
    *,
    reason: str = "",
    error: str = "",
    unexpected: str = "",
    adaptations: tuple[Change, ...] = (),
    placed: str = "",
) -> CaseResult:
    placement = (PlacedNode("n0", "", "", placed),) if placed else ()
    return CaseResult("", "", "", label, reason, adaptations, placement, 0.0, error, unexpected)
