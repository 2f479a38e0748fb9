# SPDX-License-Identifier: Apache-2.0
"""Rule: a Conv of one channel that goes step by step down the image, and in longer steps along it."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import ModelProto

from onnx_multi_backend.adapt.site import Body, Site

#: The place of the weights.
WEIGHTS = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}


def one_column(site: Site) -> bool:
    """Whether a Conv of one channel may make a single column, of several rows, with a stride along the columns alone."""
    weights = site.shape(site.input(WEIGHTS.get(site.op_type, 1)))
    strides = site.attribute("strides", [])
    if weights is None or len(weights) < 4 or weights[1] not in (1, None) or site.attribute("group", 1) != 1:
        return False
    made = site.shape(site.node.output[0]) or [None]
    return len(strides) > 1 and strides[-1] > 1 and strides[-2] == 1 and made[-1] in (1, None) and made[-2:-1] != [1]


def conv_turned(site: Site) -> Iterator[ModelProto]:
    """Exchange the last two axes of the image and of the weights, and those of the result again."""
    if not site.is_(*WEIGHTS) or not one_column(site):
        return
    rank = len(site.shape(site.input(WEIGHTS[site.op_type])) or [])
    turn = [*range(rank - 2), rank - 1, rank - 2]
    attributes = site.attributes()
    for name in ("dilations", "kernel_shape", "strides"):
        if sizes := attributes.get(name):
            attributes[name] = _turned(sizes)
    if pads := attributes.get("pads"):
        half = len(pads) // 2
        attributes["pads"] = [*_turned(pads[:half]), *_turned(pads[half:])]
    body = Body(site, site.opsets)
    inputs = list(site.node.input)
    for place in (0, WEIGHTS[site.op_type]):
        inputs[place] = body("Transpose", inputs[place], perm=turn)
    yield body.finish(body("Transpose", body(site.op_type, *inputs, **attributes), perm=turn))


def _turned(sizes: list[int]) -> list[int]:
    return [*sizes[:-2], sizes[-1], sizes[-2]]
