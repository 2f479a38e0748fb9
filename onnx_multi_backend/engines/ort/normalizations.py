# SPDX-License-Identifier: Apache-2.0
"""What ONNX Runtime's CPU provider makes of normalizations (1.24 to 1.32): right but for few numbers, so most of it is mended only beside other changes."""

from __future__ import annotations

from collections.abc import Mapping

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.operators.scales import SCALED, scales_at_run_time
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.engines.defect import FindDefect, Only

#: Of a form that is right on every other execution provider.
_PROVIDER = "CPUExecutionProvider"
#: The most neighbouring channels that are added up one by one.
_WIDEST_WINDOW = 32

#: The operators whose defects are all minor.
MINOR = SCALED | {"GroupNormalization", "LayerNormalization", "MeanVarianceNormalization"}


def _normalized(site: Site) -> Defect | None:
    """Source: measured.

    GroupNormalization has no kernel, and the body in its schema takes its place; LayerNormalization's computes the same until 1.24.
    """
    words = "the variance is the difference of two means, of which nothing is left where the mean is much larger than the deviations"
    return Defect(words, provider=_PROVIDER, minor=True)


def _mean_variance(site: Site) -> Defect | None:
    """Source: measured, in each opset; a 0 divided by 1e-9 is meant."""
    return Defect("what is all alike is NaN: 0 is divided by 0", provider=_PROVIDER, minor=True)


def _scaled(site: Site) -> Defect | None:
    """Source: measured, and the kernels."""
    if not scales_at_run_time(site):
        return None
    words = "an infinite scale makes NaN: the product of mean and scale is subtracted, not the mean"
    return Defect(words, provider=_PROVIDER, minor=True)


def _lrn(site: Site) -> Defect | None:
    """Source: measured, and its kernel. Written out, a window of 5 takes a third of the time of a large image, one of 31 the same."""
    if site.rank(site.input(0)) not in (4, None):
        return Defect("other ranks than 4 are refused at run time")
    if site.attribute("size", 0) > _WIDEST_WINDOW:
        return None
    words = "one sum goes on from channel to channel: a NaN stays in it, and what was rounded beside a large number"
    return Defect(words, provider=_PROVIDER, minor=True)


NORMALIZATIONS: Mapping[str, FindDefect] = {
    **dict.fromkeys(SCALED, _scaled),
    "GroupNormalization": _normalized,
    "LRN": _lrn,
    "LayerNormalization": Only({"onnxruntime": "<1.31"}, _normalized),
    "MeanVarianceNormalization": _mean_variance,
}
