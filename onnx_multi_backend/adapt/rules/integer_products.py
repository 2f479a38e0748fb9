# SPDX-License-Identifier: Apache-2.0
"""Rule: products of integer matrices, where a kernel multiplies and adds in float32."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from onnx import ModelProto, TensorProto

from onnx_multi_backend.adapt.intervals.values import LIMITS
from onnx_multi_backend.adapt.names import GUARDED
from onnx_multi_backend.adapt.site import Body, Site

_T = TensorProto
_TYPES = (_T.INT32, _T.INT64, _T.UINT64)
#: How many products are summed where that is not known.
_COUNT = 2**14
#: Bits of a digit, and the most products of two digits whose sum is exact in float32: `2**24 / 2**(2 * bits - 2)`.
_DIGITS = ((8, 2**10), (6, 2**14), (4, 2**18))


def integer_products(site: Site) -> Iterator[ModelProto]:
    """Write each operand in digits, which float32 multiplies and adds exactly, and put the products together as integers.

    The digits of a number are signed, so that their products are small. Results wrap around as the type does. The second body is
    for an engine that keeps 64 bits in 32.
    """
    if not site.is_("MatMul", "Gemm", "Einsum") or GUARDED in site.node.name:
        return
    operands = [name for name in site.node.input if name][: 1 if len(site.node.input) < 2 else 2]
    kind, count = site.elem_type(operands[0]), _count(site)
    bits = next((bits for bits, most in _DIGITS if count <= most), None)
    if kind not in _TYPES or bits is None or (site.is_("Einsum") and len(site.node.input) > 2):
        return
    if any(0 in (site.shape(name) or ()) for name in operands):  # OpenVINO ends the process over digits of nothing
        return
    for width in (64, 32) if kind != _T.INT32 else (32,):
        body = Body(site)
        result = _multiplied(body, site, operands, bits, width)
        if site.is_("Gemm"):
            scaled = _scaled(body, site, result, kind)
            if scaled is None:
                return
            result = scaled
        yield body.finish(result)


def _multiplied(body: Body, site: Site, operands: list[str], bits: int, width: int) -> str:
    given = site.elem_type(operands[0])
    kind = _T.INT64 if given == _T.UINT64 else given
    digits = [
        _digits(body, body.cast(name, kind) if kind != given else name, kind, _needed(site, name, bits, width), bits)
        for name in operands
    ]
    sums: dict[int, str] = {}
    for i, first in enumerate(digits[0]):
        for j, second in enumerate(digits[1] if len(digits) > 1 else [""]):
            if (i + j) * bits < width:
                product = _product(body, site, [first, second] if second else [first], kind)
                sums[i + j] = body("Add", sums[i + j], product) if i + j in sums else product
    result, base = sums[max(sums)], body.constant(2**bits, kind)
    for place in sorted(sums, reverse=True)[1:]:
        result = body("Add", body("Mul", result, base), sums[place])
    return body.cast(result, given) if kind != given else result


def _product(body: Body, site: Site, operands: list[str], kind: int) -> str:
    if site.is_("Gemm"):
        turned = [site.attribute(name, 0) for name in ("transA", "transB")]
        operands = [body("Transpose", x, perm=[1, 0]) if t else x for x, t in zip(operands, turned, strict=True)]
        return body.cast(body("MatMul", *operands), kind)
    return body.cast(body(site.op_type, *operands, **site.attributes()), kind)


def _needed(site: Site, name: str, bits: int, width: int) -> int:
    """How many digits a value has."""
    value, most = site.value(name), -(-width // bits)
    return next((n for n in range(1, most) if value.within(-(2 ** (bits * n - 1)), 2 ** (bits * n - 1))), most)


def _digits(body: Body, x: str, kind: int, count: int, bits: int) -> list[str]:
    """The digits of a number from the lowest on, as float32, each from ``-2**(bits - 1)`` up.

    What all but the first lack below zero is added to the number; the bits of each digit are a number with few digits in float32 too.
    """
    if count == 1:
        return [body.cast(x, _T.FLOAT)]
    half = 2 ** (bits - 1)
    raised = body("Add", x, body.constant(sum(half << (bits * i) for i in range(count - 1)), kind))
    found = []
    for i in range(count - 1):
        masked = body("BitwiseAnd", raised, body.constant((2**bits - 1) << (bits * i), kind))
        digit = body("Mul", body.cast(masked, _T.FLOAT), body.constant(2.0 ** (-bits * i), _T.FLOAT))
        found.append(body("Sub", digit, body.constant(half, _T.FLOAT)))
    top = body("BitwiseAnd", raised, body.constant(-(1 << (bits * (count - 1))), kind))
    found.append(body("Mul", body.cast(top, _T.FLOAT), body.constant(2.0 ** (-bits * (count - 1)), _T.FLOAT)))
    return found


def _scaled(body: Body, site: Site, product: str, kind: int) -> str | None:
    """Gemm's factors, where they are integers, and its third input."""
    alpha, beta = site.attribute("alpha", 1.0), site.attribute("beta", 1.0)
    if not site.has_input(2):
        beta = 1.0  # it counts for nothing
    low, high = LIMITS[kind]
    if site.opset < 7 or not all(low <= factor <= high and factor == int(factor) for factor in (alpha, beta)):
        return None
    if alpha != 1:
        product = body("Mul", product, body.constant(int(alpha), kind))
    if not site.has_input(2):
        return product
    third = site.input(2) if beta == 1 else body("Mul", site.input(2), body.constant(int(beta), kind))
    return str(body("Add", product, third))


def _count(site: Site) -> int:
    """How many products one element of the result is the sum of."""
    if site.is_("Einsum"):
        return _contracted(site)
    shape, other = site.shape(site.input(0)), site.shape(site.input(1))
    place = 0 if site.attribute("transA", 0) else -1
    size = shape[place] if shape else None
    if size is None and other:
        size = other[-1 if site.attribute("transB", 0) else -2 if len(other) > 1 else 0]
    return _COUNT if size is None else size


def _contracted(site: Site) -> int:
    given, arrow, made = site.attribute("equation", "").replace(" ", "").partition("->")
    terms = given.split(",")
    if "." in given or len(terms) != len(site.node.input):
        return _COUNT
    if not arrow:
        made = "".join(label for label, times in Counter(given.replace(",", "")).items() if times == 1)
    sizes: dict[str, int | None] = {}
    for term, name in zip(terms, site.node.input, strict=True):
        shape = site.shape(name) or [None] * len(term)
        for label, size in zip(term, shape, strict=False):
            sizes[label] = size if sizes.get(label) is None else sizes[label]
    count = 1
    for label in sizes.keys() - set(made):
        size = sizes[label]
        if size is None:
            return _COUNT
        count *= size
    return count
