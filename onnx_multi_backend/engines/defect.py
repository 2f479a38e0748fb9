# SPDX-License-Identifier: Apache-2.0
"""Forms of operators that an engine accepts and computes wrongly: what the entries of its table are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from onnx_multi_backend.adapt.engine import Defect
from onnx_multi_backend.adapt.site import Site
from onnx_multi_backend.host.applies import When, applies

#: What goes wrong with a node; None where nothing is known.
FindDefect = Callable[[Site], Defect | None]


@dataclass(frozen=True)
class Only:
    """A defect of some releases, platforms or processors: elsewhere the engine gets the node as it is.

    Parameters
    ----------
    when : mapping of str to str
        See `onnx_multi_backend.host.applies`.
    defect : callable
    """

    when: When
    defect: FindDefect

    def __call__(self, site: Site) -> Defect | None:
        return find(self, site)


@dataclass(frozen=True)
class Several:
    """Defects of one operator: the first with which ordinary values are wrong counts; where there is none, the first."""

    defects: tuple[FindDefect, ...]

    def __call__(self, site: Site) -> Defect | None:
        return find(self, site)


def worse(first: Defect | None, second: Defect | None) -> Defect | None:
    """The one with which ordinary values are wrong; the first where that is both, or neither."""
    return second if first is None or (second is not None and second.wrong and not first.wrong) else first


def may_apply(defect: FindDefect, inside: When | None = None) -> bool:
    """Whether a defect is one of this release, platform and processor; see `find`."""
    if isinstance(defect, Only):
        return applies(defect.when, inside=inside) and may_apply(defect.defect, inside)
    return not isinstance(defect, Several) or any(may_apply(one, inside) for one in defect.defects)


def find(defect: FindDefect, site: Site, inside: When | None = None) -> Defect | None:
    """What goes wrong with a node.

    Parameters
    ----------
    defect : callable
    site : Site
    inside : mapping of str to str, optional
        Releases that count instead of the installed ones, see `applies`.
    """
    if isinstance(defect, Only):
        return find(defect.defect, site, inside) if applies(defect.when, inside=inside) else None
    if isinstance(defect, Several):
        return functools.reduce(worse, (find(one, site, inside) for one in defect.defects), None)
    return defect(site)
