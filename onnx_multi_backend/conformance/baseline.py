# SPDX-License-Identifier: Apache-2.0
"""The labels a backend had, committed, so that a case that got worse is noticed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from onnx_multi_backend.conformance import processor_facts
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.host import processor
from onnx_multi_backend.host.processor import Processor


class BaselineError(OnnxMultiBackendError, ValueError):
    """A baseline file is malformed."""


class Worse(NamedTuple):
    """A case that lost something against its baseline."""

    name: str
    old: Label
    new: Label


@dataclass(frozen=True)
class Baseline:
    """The labels of one backend.

    Parameters
    ----------
    backend : str
    engines : mapping of str to str
        The version of each package the labels depend on.
    labels : mapping of str to Label
        The label of each case by name.
    processor : Processor, optional
        Where they were obtained; baselines of older versions do not tell.
    """

    backend: str
    engines: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Label] = field(default_factory=dict)
    processor: Processor | None = None

    def lost(self, name: str, label: Label) -> Label | None:
        """Return the label that a case had, where the new one is worse; None where nothing is lost.

        With other instruction sets than the baseline's a pass is as good as any other: a defect of some processors alone is
        adapted around there.
        """
        old = self.labels.get(name)
        if old is None or not label.is_worse_than(old):
            return None
        elsewhere = self.processor is not None and self.processor.telling != processor.current().telling
        return None if elsewhere and label.is_pass and old.is_pass else old

    @classmethod
    def read(cls, path: Path) -> Baseline:
        """Read a baseline file.

        Raises
        ------
        BaselineError
            The file is malformed.
        OSError
            It cannot be read.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            labels = {name: Label(label) for name, label in content["cases"].items()}
            where = processor_facts.from_dict(content["processor"]) if "processor" in content else None
            return cls(str(content["backend"]), dict(content["engines"]), labels, where)
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise BaselineError(f"{path}: not a baseline ({e!r}); write it anew with --onnx-update-baselines") from e

    def write(self, path: Path) -> None:
        """Write the baseline, one case a line, sorted by name, so that a difference reads well."""
        labels = {name: self.labels[name].value for name in sorted(self.labels)}
        where = {"processor": processor_facts.to_dict(self.processor)} if self.processor else {}
        content = {"backend": self.backend, "engines": dict(sorted(self.engines.items())), **where, "cases": labels}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def worse(old: Mapping[str, Label], new: Mapping[str, Label]) -> list[Worse]:
    """Return the cases in both whose new label is worse than the old one, sorted by name."""
    return [Worse(n, old[n], new[n]) for n in sorted(old.keys() & new.keys()) if new[n].is_worse_than(old[n])]
