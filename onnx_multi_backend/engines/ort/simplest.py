# SPDX-License-Identifier: Apache-2.0
"""A model that every provider compiles unless its options are wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import ModelProto, TensorProto, helper

from onnx_multi_backend.devices import Device

_SIMPLEST = helper.make_model(
    helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "simplest",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    ),
    opset_imports=[helper.make_opsetid("", 13)],
    ir_version=7,
)

#: Devices and providers with their options, written out, that compiled it: compiling it costs as much as any small model.
_compiled: set[str] = set()


def compiles(
    providers: Sequence[tuple[str, Mapping[str, str]]], device: Device, accepts: Callable[[ModelProto], str | None]
) -> bool:
    """Whether the providers compile anything at all with their options; a yes is asked for once.

    Parameters
    ----------
    providers : sequence of (str, mapping of str to str)
    device : Device
        Where the first of them runs.
    accepts : callable
        Compiles a model with them; returns the complaint, or None.
    """
    key = repr((device.text, [(name, sorted(options.items())) for name, options in providers]))
    if key not in _compiled and accepts(_SIMPLEST) is None:
        _compiled.add(key)
    return key in _compiled
