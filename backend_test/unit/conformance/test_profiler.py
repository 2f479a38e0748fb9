# SPDX-License-Identifier: Apache-2.0
"""Where nodes run, by ONNX Runtime's profiler: another source than the placement, which sees each kernel that really ran."""

from __future__ import annotations

from pathlib import Path

import onnx

import onnx_multi_backend as omb
from backend_test.unit.conformance.profiled import providers_that_ran
from onnx_multi_backend.conformance.cases import load_model

#: Cases of several operators, some of which the OpenVINO execution provider leaves to the CPU.
PROFILED = (
    "test_add_cpu",
    "test_relu_cpu",
    "test_softmax_axis_1_cpu",
    "test_affine_grid_2d_expanded_cpu",
    "test_center_crop_pad_crop_expanded_cpu",
    "test_clip_expanded_cpu",
    "test_gelu_default_1_expanded_cpu",
    "test_layer_normalization_2d_axis0_expanded_cpu",
    "test_sce_mean_expanded_cpu",
    "test_det_2d_cpu",
    "test_string_concat_cpu",
    "test_nonmaxsuppression_two_classes_cpu",
)


def test_onnxruntimes_profiler_agrees_with_the_placement(openvino_ep: type[omb.Preset], tmp_path: Path) -> None:
    agreed = 0
    for name in PROFILED:
        model = onnx.ModelProto.FromString(load_model(name).SerializeToString())
        told = {node.provider for node in openvino_ep.prepare(model, fallback="full").placement()}
        options = {"enable_profiling": True, "profile_file_prefix": str(tmp_path / name)}
        profiled = omb.OrtBackend.prepare(
            model, provider_name="OpenVINOExecutionProvider", fallback="full", session_options=options
        )
        ran = providers_that_ran(profiled, name)
        if told:
            assert ran == told, name
            agreed += 1
    assert agreed >= 10
