# SPDX-License-Identifier: Apache-2.0
"""``report.json``: everything that is known of a run. Its schema is ``report.schema.json``."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx_multi_backend.conformance.backend_ref import BackendRef
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.reading import take, take_texts, take_versions
from onnx_multi_backend.conformance.report.environment import Environment
from onnx_multi_backend.conformance.report.files import write_text
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.errors import OnnxMultiBackendError
from onnx_multi_backend.host.versions import installed_version, versions_of

#: Raised when a field changes its meaning or goes; a new field leaves it as it is.
SCHEMA_VERSION = 1

FILE_NAME = "report.json"


class ReportError(OnnxMultiBackendError, ValueError):
    """A file is not a report, or not one that this version reads."""


@dataclass(frozen=True)
class BackendRun:
    """One backend of a report, and how it was run.

    Parameters
    ----------
    name : str
        Its key in the report: the preset's name, or the dotted path.
    path : str
        The dotted path of the module or class.
    preset : str
        The preset's name; empty for a backend that is not a preset.
    devices : tuple of str
    options : mapping of str to value
        What every ``prepare`` was given; what JSON has no form for, as its ``repr``.
    versions : mapping of str to str
        Of onnx, and of the packages that compute.
    expectations : str
        The file of known failures; empty without one.
    problems : tuple of str
        What was wrong with the expectations themselves, one line each.
    environment : Environment
        Where it ran: a report that was merged holds backends of several environments.
    """

    name: str
    path: str
    preset: str
    devices: tuple[str, ...]
    options: Mapping[str, Any]
    versions: Mapping[str, str]
    expectations: str
    problems: tuple[str, ...]
    environment: Environment

    @classmethod
    def of(
        cls,
        ref: BackendRef,
        environment: Environment,
        *,
        versions: Mapping[str, str] | None = None,
        preset: str = "",
        expectations: str = "",
        problems: Iterable[str] = (),
    ) -> BackendRun:
        """Describe a backend that is run here.

        Parameters
        ----------
        ref : BackendRef
        environment : Environment
        versions : mapping of str to str, optional
            Of the packages that compute; by default of the distribution that the backend's module comes from.
        preset, expectations, problems
            As the attributes.
        """
        computing = versions or versions_of(ref.path.split(".")[0])
        return cls(
            ref.name,
            ref.path,
            preset,
            ref.devices,
            ref.options_as_json,
            {"onnx": installed_version("onnx") or "", **computing},
            expectations,
            tuple(problems),
            environment,
        )

    @property
    def engine(self) -> str:
        """The packages that compute and their versions, ``onnxruntime 1.31.1``."""
        return ", ".join(f"{name} {version}".rstrip() for name, version in self.versions.items() if name != "onnx")

    def to_dict(self) -> dict[str, Any]:
        """Return the backend as JSON has it; `from_dict` is the way back."""
        return {
            "path": self.path,
            "preset": self.preset,
            "devices": list(self.devices),
            "options": dict(self.options),
            "versions": dict(self.versions),
            "expectations": self.expectations,
            "problems": list(self.problems),
            "environment": self.environment.to_dict(),
        }

    @classmethod
    def from_dict(cls, name: str, values: Mapping[str, Any]) -> BackendRun:
        """Rebuild a backend from what `to_dict` returned."""
        return cls(
            name,
            take(values, "path", str),
            take(values, "preset", str),
            take_texts(values, "devices"),
            dict(take(values, "options", Mapping)),
            take_versions(values, "versions"),
            take(values, "expectations", str),
            take_texts(values, "problems"),
            Environment.from_dict(take(values, "environment", Mapping)),
        )


@dataclass(frozen=True)
class Report:
    """What came of a run: several backends side by side.

    Parameters
    ----------
    environment : Environment
        Of the command that made the report.
    backends : mapping of str to BackendRun
    cases : tuple of CaseResult
        Of all backends, one backend after the other, in ONNX's order.
    models : mapping of str to CaseFacts
        What is known of each case's model, by the case's name.
    interrupted : bool
        Whether cases are missing because the run was stopped.
    """

    environment: Environment
    backends: Mapping[str, BackendRun]
    cases: tuple[CaseResult, ...]
    models: Mapping[str, CaseFacts] = field(default_factory=dict)
    interrupted: bool = False

    def of(self, backend: str) -> list[CaseResult]:
        """Return the results of one backend."""
        return [c for c in self.cases if c.backend == backend]

    @property
    def unexpected(self) -> list[CaseResult]:
        """The results that are not as expected."""
        return [c for c in self.cases if c.unexpected]

    @property
    def as_expected(self) -> bool:
        """Whether every result is as expected, and every expectation meets a case."""
        return not self.unexpected and not any(b.problems for b in self.backends.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON has it; `from_dict` is the way back."""
        return {
            "schema_version": SCHEMA_VERSION,
            "interrupted": self.interrupted,
            "environment": self.environment.to_dict(),
            "backends": {name: backend.to_dict() for name, backend in self.backends.items()},
            "cases": [case.to_dict() for case in self.cases],
            "models": {name: facts.to_dict() for name, facts in self.models.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Report:
        """Rebuild a report from what `to_dict` returned.

        Raises
        ------
        ReportError
            It is of another schema version.
        KeyError, TypeError, ValueError
            It is malformed.
        """
        version = take(values, "schema_version", int)
        if version != SCHEMA_VERSION:
            raise ReportError(f"its schema_version is {version!r}, this version of the package reads {SCHEMA_VERSION}")
        backends, models = take(values, "backends", Mapping), take(values, "models", Mapping)
        report = cls(
            Environment.from_dict(take(values, "environment", Mapping)),
            {name: BackendRun.from_dict(name, backend) for name, backend in backends.items()},
            tuple(map(CaseResult.from_dict, take(values, "cases", list))),
            {name: CaseFacts.from_dict(facts) for name, facts in models.items()},
            take(values, "interrupted", bool),
        )
        for case in report.cases:
            if case.backend not in backends:
                raise ValueError(f"{case.name!r} is of the backend {case.backend!r}, which is not among the backends")
            if case.name not in models:
                raise ValueError(f"{case.name!r} is not among the models")
        return report

    @classmethod
    def read(cls, path: Path) -> Report:
        """Read a ``report.json``, or that of a folder which ``--out`` wrote.

        Raises
        ------
        ReportError
            The file is not a report, or of another schema version; the folder holds none.
        OSError
            It cannot be read.
        """
        if path.is_dir():
            folder, path = path, path / "report.json"
            if not path.exists():
                raise ReportError(
                    f"{folder}: the folder holds no report.json. Name the --out folder of a run, or its report.json."
                )
        try:
            return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except ReportError as e:
            raise ReportError(f"{path}: {e}. Run the suite again.") from e
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            raise ReportError(f"{path}: not a conformance report ({type(e).__name__}: {e}).") from e

    def write(self, path: Path) -> None:
        """Write ``report.json``, one case a line."""
        content = self.to_dict()
        lines = [f'"{key}": {json.dumps(content[key])}' for key in content if key not in ("cases", "models")]
        lines.append(f'"cases": [\n{_lines(map(json.dumps, content["cases"]))}\n]')
        models = (f"{json.dumps(name)}: {json.dumps(facts)}" for name, facts in content["models"].items())
        lines.append(f'"models": {{\n{_lines(models)}\n}}')
        write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def _lines(items: Iterable[str]) -> str:
    return ",\n".join(items)
