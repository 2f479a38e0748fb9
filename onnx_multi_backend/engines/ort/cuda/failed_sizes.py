# SPDX-License-Identifier: Apache-2.0
"""Runs that a convolution of CUDA refused.

The kernel keeps the sizes of its input before it looks at them, and takes a second input of these sizes for one that it is ready
for: it reads beyond it, or ends the process. After an input of other sizes it refuses them again. Source: measured with 1.31.1.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

from onnx_multi_backend.errors import RunError

#: What ONNX Runtime says of an operator that failed.
_CONVOLUTION = re.compile(r"running \w*Conv\w* node")


class FailedSizes:
    """The sizes of the last run, where a convolution refused them."""

    def __init__(self) -> None:
        self._failed: tuple[Hashable, str] | None = None

    def check(self, feeds: Mapping[str, Any]) -> None:
        """Raise what was raised before, where these are the sizes that were refused."""
        if (failed := self._failed) is not None and failed[0] == _sizes(feeds):
            raise RunError(failed[1])

    def note(self, feeds: Mapping[str, Any], error: Exception) -> Exception:
        """Keep the sizes that were refused; the error is passed on."""
        if _CONVOLUTION.search(str(error)):
            self._failed = (_sizes(feeds), str(error))
        return error

    def forget(self) -> None:
        """Others went well."""
        self._failed = None


def _sizes(feeds: Mapping[str, Any]) -> Hashable:
    return tuple((name, tuple(getattr(value, "shape", ()))) for name, value in sorted(feeds.items()))
