# SPDX-License-Identifier: Apache-2.0
"""What is known of the CUDA execution provider. Its table is imported only where it is used."""

from __future__ import annotations

from onnx_multi_backend.adapt.rules.arg_infinities import arg_infinities
from onnx_multi_backend.adapt.rules.instance_of_one import instance_of_one
from onnx_multi_backend.adapt.rules.recurrent_bias import recurrent_bias
from onnx_multi_backend.adapt.rules.scalars import scalars
from onnx_multi_backend.adapt.rules.top_k_infinities import top_k_infinities
from onnx_multi_backend.adapt.rules.variadic_pairs import variadic_pairs
from onnx_multi_backend.engines.ort import runtime
from onnx_multi_backend.engines.ort.cuda import convolutions
from onnx_multi_backend.engines.ort.cuda.defects import CUDA
from onnx_multi_backend.engines.ort.records import GPU_WHEEL, Record
from onnx_multi_backend.host import devices

BUILT_IN = Record(
    spoiled_by=convolutions.spoils,
    family=devices.CUDA,
    cure=runtime.install_instead(GPU_WHEEL),
    nvidia_library="cuda",
    on_cuda=True,
    device_option="device_id",
    device_by_index=True,
    hands_optionals_on=False,
    defects=CUDA,
    wrong_in_empty_runs=frozenset({"BatchNormalization", "RNN"}),
    rules=(
        *(arg_infinities, instance_of_one, recurrent_bias, scalars),
        *(top_k_infinities, variadic_pairs),
    ),
)
