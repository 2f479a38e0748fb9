# SPDX-License-Identifier: Apache-2.0
"""What depends on the TensorRT that ONNX Runtime links: from 11 on, precision is written in the model, not in options."""

from __future__ import annotations

import functools
import importlib.util
import mmap
import re
from pathlib import Path

from onnx import ModelProto

from onnx_multi_backend.engines.ort import runtime
from onnx_multi_backend.engines.ort.quantization import silent
from onnx_multi_backend.models.node_order import in_order

#: The release whose networks are strongly typed: it has no calibrators and no flags for int8 and fp16.
TYPED = 11

#: Options of the execution provider that it does not have any more.
GONE = ("trt_fp16_enable", "trt_int8_enable", "trt_int8_use_native_calibration_table", "trt_layer_norm_fp32_fallback")

#: Stay float32 in a float16 model, as ``trt_layer_norm_fp32_fallback`` had it.
_NORMS = ("LayerNormalization", "RMSNormalization", "InstanceNormalization", "GroupNormalization")

_LIBRARY = re.compile(rb"libnvinfer\.so\.(\d+)|nvinfer_(\d+)\.dll")


@functools.cache
def linked() -> int | None:
    """TensorRT's major version that the execution provider is linked with; None where there is no such provider."""
    found = importlib.util.find_spec("onnxruntime")
    folder = Path(found.origin).parent / "capi" if found is not None and found.origin else None
    for name in ("libonnxruntime_providers_tensorrt.so", "onnxruntime_providers_tensorrt.dll"):
        if folder is None or not (folder / name).is_file():
            continue
        with (folder / name).open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if (match := _LIBRARY.search(content)) is not None:
                return int(match[1] or match[2])
    return None


def is_typed() -> bool:
    """Whether precision has to be written in the model."""
    major = linked()
    return major is not None and major >= TYPED


def in_float16(model: ModelProto) -> ModelProto:
    """The model with float16 inside, normalizations, inputs and outputs left as they are."""
    runtime.load()
    from onnxruntime.transformers.float16 import DEFAULT_OP_BLOCK_LIST, convert_float_to_float16

    copy = ModelProto()
    copy.CopyFrom(model)
    with silent():
        made = convert_float_to_float16(copy, keep_io_types=True, op_block_list=[*DEFAULT_OP_BLOCK_LIST, *_NORMS])
    return in_order(made)  # it appends the casts of inputs
