# SPDX-License-Identifier: Apache-2.0
"""Rules: the training operators that are plain arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.site import Body, Site

_DOMAIN = "ai.onnx.preview.training"


class _Step:
    """The arithmetic of one optimizer's step, in the type of the tensors."""

    def __init__(self, site: Site, states: int) -> None:
        self.body = Body(site)
        self.rate, self.count, *tensors = site.node.input
        size = len(tensors) // (2 + states)
        #: For each optimized tensor: itself, its gradient, its states.
        self.groups = list(zip(*(tensors[i * size : (i + 1) * size] for i in range(2 + states)), strict=True))
        self.kind = site.elem_type(tensors[0])
        self.rate = self.number_of(self.rate, site)
        self.attribute = site.attribute

    def number_of(self, value: str, site: Site) -> str:
        return value if site.elem_type(value) == self.kind else self.body.cast(value, self.kind)

    def number(self, value: float) -> str:
        return self.body.constant(value, self.kind)

    def sum(self, a: str, b: str) -> str:
        return str(self.body("Add", a, b))

    def times(self, factor: float | str, value: str) -> str:
        return str(self.body("Mul", factor if isinstance(factor, str) else self.number(factor), value))

    def regularized(self, x: str, gradient: str) -> str:
        return self.sum(self.times(self.attribute("norm_coefficient", 0.0), x), gradient)

    def by_count(self, later: str, first: str) -> str:
        started = self.body("Greater", self.count, self.body.constant(0, TensorProto.INT64))
        return str(self.body("Where", started, later, first))

    def finish(self, results: Sequence[tuple[str, ...]]) -> ModelProto:
        return self.body.finish(*(value for values in zip(*results, strict=True) for value in values))


def adagrad(site: Site) -> Iterator[ModelProto]:
    """Source: the pseudo code in Adagrad's documentation."""
    if site.domain != _DOMAIN or site.op_type != "Adagrad":
        return
    step = _Step(site, 1)
    body = step.body
    decay = step.times(site.attribute("decay_factor", 0.0), body.cast(step.count, step.kind))
    rate = body("Div", step.rate, step.sum(step.number(1), decay))
    results = []
    for x, gradient, squares in step.groups:
        g = step.regularized(x, gradient)
        new = step.sum(squares, step.times(g, g))
        scale = step.sum(body("Sqrt", new), step.number(site.attribute("epsilon", 0.0)))
        results.append((str(body("Sub", x, body("Div", step.times(rate, g), scale))), new))
    yield step.finish(results)


def adam(site: Site) -> Iterator[ModelProto]:
    """Source: the pseudo code in Adam's documentation."""
    if site.domain != _DOMAIN or site.op_type != "Adam":
        return
    step = _Step(site, 2)
    body = step.body
    alpha, beta = site.attribute("alpha", 0.9), site.attribute("beta", 0.999)
    count = body.cast(step.count, step.kind)

    def left(base: float) -> str:
        return str(body("Sub", step.number(1), body("Pow", step.number(base), count)))

    corrected = body("Div", step.times(step.rate, body("Sqrt", left(beta))), left(alpha))
    rate = step.by_count(corrected, step.rate)
    results = []
    for x, gradient, mean, squares in step.groups:
        g = step.regularized(x, gradient)
        new_mean = step.sum(step.times(alpha, mean), step.times(1 - alpha, g))
        new_squares = step.sum(step.times(beta, squares), step.times(1 - beta, step.times(g, g)))
        scale = step.sum(body("Sqrt", new_squares), step.number(site.attribute("epsilon", 0.0)))
        moved = body("Sub", x, body("Div", step.times(rate, new_mean), scale))
        kept = step.times(1 - site.attribute("norm_coefficient_post", 0.0), moved)
        results.append((kept, new_mean, new_squares))
    yield step.finish(results)


def momentum(site: Site) -> Iterator[ModelProto]:
    """Source: the pseudo code in Momentum's documentation."""
    if site.domain != _DOMAIN or site.op_type != "Momentum":
        return
    step = _Step(site, 1)
    alpha = site.attribute("alpha")
    beta = step.by_count(step.number(site.attribute("beta")), step.number(1))
    results = []
    for x, gradient, velocity in step.groups:
        g = step.regularized(x, gradient)
        new = step.sum(step.times(alpha, velocity), step.times(beta, g))
        way = step.sum(g, step.times(alpha, new)) if site.attribute("mode") == "nesterov" else new
        results.append((str(step.body("Sub", x, step.times(step.rate, way))), new))
    yield step.finish(results)
