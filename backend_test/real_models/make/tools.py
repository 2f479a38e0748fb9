# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime's own tools make of the other models: quantized, of half precision, fused, optimized."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime import quantization
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, matmul_nbits_quantizer
from onnxruntime.transformers import float16, optimizer
from onnxruntime.transformers.fusion_options import FusionOptions

from backend_test.real_models.make.saving import feeds_of, save


class Reader(CalibrationDataReader):  # type: ignore[misc]
    """A few batches like the model's own inputs."""

    def __init__(self, feeds: dict[str, np.ndarray]) -> None:
        rng = np.random.default_rng(0)
        self._batches: Iterator[Any] = iter(
            [{n: rng.random(a.shape, np.float32) if a.dtype.kind == "f" else a for n, a in feeds.items()}] * 3
        )

    def get_next(self) -> Any:
        return next(self._batches, None)


def make(root: Path) -> None:
    quantized(root)
    halved(root)
    fused(root)
    optimized(root)


def quantized(root: Path) -> None:
    for name in ("torchvision-resnet18", "torchvision-mobilenet_v3_small"):
        for kind in QuantFormat:
            path = root / f"{name}.tmp.onnx"
            feeds = feeds_of(root, name)
            source = root / f"{name}.pre.onnx"
            quantization.quant_pre_process(root / name / "model.onnx", source, skip_symbolic_shape=True)
            quantization.quantize_static(
                source,
                path,
                Reader(feeds),
                quant_format=kind,
                per_channel=kind is QuantFormat.QDQ,
                activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
            )
            source.unlink()
            save(root, f"int8-{kind.name.lower()}-{name}", path, feeds)
    for name in ("transformers-bert-torchscript", "torch-lstm-tagger-torchscript", "transformers-gpt2"):
        path = root / f"{name}.tmp.onnx"
        quantization.quantize_dynamic(root / name / "model.onnx", path, weight_type=QuantType.QInt8)
        save(root, f"int8-dynamic-{name}", path, feeds_of(root, name))
    for name, symmetric in (("transformers-llama", True), ("transformers-qwen3", False)):
        bits = matmul_nbits_quantizer.MatMulNBitsQuantizer(
            onnx.load(root / name / "model.onnx"), block_size=32, is_symmetric=symmetric
        )
        bits.process()
        save(root, f"int4-{name}", bits.model.model, feeds_of(root, name))


def halved(root: Path) -> None:
    for name in ("torchvision-resnet18", "transformers-bert-torchscript"):
        model = float16.convert_float_to_float16(onnx.load(root / name / "model.onnx"), keep_io_types=True)
        save(root, f"fp16-{name}", model, feeds_of(root, name))


def fused(root: Path) -> None:
    """The transformers optimizer: Attention, SkipLayerNormalization, EmbedLayerNormalization, rotary embeddings."""
    for name, kind in (
        ("transformers-bert-torchscript", "bert"),
        ("transformers-roberta-torchscript", "bert"),
        ("transformers-llama", "gpt_neox"),
    ):
        path = str(root / name / "model.onnx")
        options = FusionOptions(kind)
        model = optimizer.optimize_model(path, kind, num_heads=4, hidden_size=128, optimization_options=options)
        save(root, f"fused-{name}", model.model, feeds_of(root, name))
        if kind == "bert":
            model.convert_float_to_float16(keep_io_types=True)  # in place
            save(root, f"fused-fp16-{name}", model.model, feeds_of(root, name))


def optimized(root: Path) -> None:
    """What a session saves: at the level ALL it is for this processor only."""
    levels = ort.GraphOptimizationLevel
    for name, level, word in (
        ("torchvision-mobilenet_v3_small", levels.ORT_ENABLE_ALL, "all"),
        ("transformers-bert-torchscript", levels.ORT_ENABLE_EXTENDED, "extended"),
        ("transformers-llama", levels.ORT_ENABLE_EXTENDED, "extended"),
        ("int8-qdq-torchvision-resnet18", levels.ORT_ENABLE_EXTENDED, "extended"),
    ):
        path = root / f"{name}.tmp.onnx"
        options = ort.SessionOptions()
        options.graph_optimization_level, options.optimized_model_filepath = level, str(path)
        options.log_severity_level = 3
        ort.InferenceSession(root / name / "model.onnx", options, providers=["CPUExecutionProvider"])
        save(root, f"optimized-{word}-{name}", path, feeds_of(root, name))
