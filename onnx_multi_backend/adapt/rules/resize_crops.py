# SPDX-License-Identifier: Apache-2.0
"""Rule: Resize that crops, where only a run tells whether a cropped axis keeps its size."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from onnx_multi_backend.adapt.names import KERNEL
from onnx_multi_backend.adapt.operators.resizing import crops, given, resized_axes
from onnx_multi_backend.adapt.renaming import renamed
from onnx_multi_backend.adapt.rules.resize import resize
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_FLOATS = (_T.FLOAT, _T.FLOAT16, _T.DOUBLE)


def resize_crops(site: Site) -> Iterator[ModelProto]:
    """Leave the node to the engine's kernel unless an axis keeps its size and is cropped: `resize` writes it out for these runs."""
    axes = resized_axes(site)
    if not site.is_("Resize") or not crops(site) or axes is None or not given(site, 3) or KERNEL in site.node.name:
        return
    if site.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        return
    if site.attribute("mode", "nearest") != "nearest" and site.elem_type(site.input(0)) not in _FLOATS:
        return  # the kernel cuts what is between two integers, and does not round it
    shape = site.shape(site.input(0)) or [None]
    if None not in shape and all(site.constant(site.input(i)) is not None for i in (1, 3)):
        return  # it is known: ONNX Runtime 1.24 may refuse an If of a known condition
    written = next(resize(site), None)
    if written is None:
        return
    body = Body(site)
    kernel = NodeProto()
    kernel.CopyFrom(site.node)
    kernel.name, kernel.input[2] = KERNEL, ""  # until opset 13, scales that are empty
    kernel.input[1] = body.cast(site.input(1), _T.FLOAT)  # it reads no other region
    then, other = _branch(site, list(written.graph.node), "written"), _branch(site, [kernel], "kernel")
    yield body.finish(body("If", _keeps_a_size(body, site, axes), then_branch=then, else_branch=other))


def _keeps_a_size(body: Body, site: Site, axes: list[int]) -> str:
    """Whether an axis of which a part is taken keeps its size."""
    count = len(axes)
    lengths = body("Gather", body("Shape", site.input(0)), body.ints(*axes), axis=0)
    begins, ends = (
        body.cast(body("Slice", site.input(1), body.ints(start), body.ints(start + count)), _T.FLOAT)
        for start in (0, count)
    )
    whole = body(
        "And",
        body("Equal", begins, body.constant(0, _T.FLOAT)),
        body("Equal", ends, body.constant(1, _T.FLOAT)),
    )
    kept = body("And", body("Equal", site.input(3), lengths), body("Not", whole))
    return body.cast(body("ReduceMax", body.cast(kept, _T.INT32), body.ints(0), keepdims=0), _T.BOOL)


def _branch(site: Site, nodes: list[NodeProto], name: str) -> GraphProto:
    """A branch of these nodes, in names of its own."""
    made = {output for node in nodes for output in node.output}
    own = [renamed(node, lambda value: f"{name}_{value}" if value in made else value) for node in nodes]
    kind, rank = site.elem_type(site.input(0)), site.rank(site.input(0)) or 0
    result = helper.make_tensor_value_info(f"{name}_{site.node.output[0]}", kind, [None] * rank)
    return helper.make_graph(own, name, [], [result])
