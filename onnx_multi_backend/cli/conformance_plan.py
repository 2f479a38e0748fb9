# SPDX-License-Identifier: Apache-2.0
"""Which backends ``conformance`` runs, and what is expected of each."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnx_multi_backend import conformance
from onnx_multi_backend.cli import arguments
from onnx_multi_backend.cli.arguments import Choice
from onnx_multi_backend.conformance import STANDARD_DEVICES, BackendRef, Expectations, Plan
from onnx_multi_backend.errors import OptionError
from onnx_multi_backend.host.devices import DeviceFamily
from onnx_multi_backend.presets.registry import PART_OF

#: Presets that are run where they are named alone, and why.
_ONLY_IF_ASKED = {"Ort": "run it with --preset Ort: with the CPU provider it repeats OrtCpu"}

#: The expectations of the presets, which come with the package.
FOLDER = Path(conformance.__file__).parent / "known"


def make_plans(
    presets: Sequence[str] | None,
    backends: Sequence[str] | None,
    device: str | None,
    options: Mapping[str, Any],
    *,
    own_options: bool,
    folder: Path | None,
    file: str | None,
) -> tuple[list[Plan], list[Choice]]:
    """Plan the run.

    Parameters
    ----------
    presets, backends : sequence of str, optional
        Names and dotted paths; without either, every preset that is usable here but those of `_ONLY_IF_ASKED`.
    device : str, optional
    options : mapping
    own_options : bool
        Whether presets run with options that their expectations were not written for.
    folder : Path, optional
        Holds a file of expectations for each preset.
    file : str, optional
        ``FILE``, or ``NAME=FILE`` where it is not clear whose expectations these are.

    Returns
    -------
    plans : list of Plan
    left_out : list of Choice
        Presets that cannot be used here.
    """
    if device == "":
        raise OptionError("--device is empty: name a device, or leave the option out.")
    if folder is not None and not folder.is_dir():
        raise OptionError(f"--expectations-dir {folder}: there is no such folder.")
    choices = arguments.choose(presets, device, options) if presets or not backends else []
    if not presets:
        choices = [replace(c, why_not=c.why_not or _ONLY_IF_ASKED.get(c.preset.name, "")) for c in choices]
    if backends:
        if options:
            raise OptionError("--option and --fallback are for presets; a --backend takes none.")
        sys.path.insert(0, os.getcwd())  # as for python -m: a backend may lie in the working directory
    names = [c.preset.name for c in choices if not c.why_not] + list(dict.fromkeys(backends or ()))
    given = _given_expectations(file, names, foreign=backends or ())
    plans = [_preset_plan(c, folder or FOLDER, given, strict=not own_options) for c in choices if not c.why_not]
    for path in dict.fromkeys(backends or ()):
        source = given.get(path)
        known = Expectations.load(source) if source else Expectations()
        plans.append(Plan(BackendRef(path, devices=(device or "CPU",)), known, str(source or "")))
    return plans, [c for c in choices if c.why_not]


def file_stem(preset: str, fallback: str = "partial") -> str:
    """The name of a file about a preset's labels: ``ort_openvino_full``."""
    stem = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", preset).lower()
    return stem if fallback == "partial" else f"{stem}_{fallback}"


def _named_by(preset: str) -> list[str]:
    """The presets whose files serve a preset: its own, and that of the one that it is a part of."""
    return [preset, PART_OF[preset]] if preset in PART_OF else [preset]


def _given_expectations(file: str | None, names: Sequence[str], *, foreign: Sequence[str]) -> dict[str, Path]:
    """Whose expectations the file holds: the one named before it, else the only backend there is."""
    if file is None:
        return {}
    name, equals, rest = file.partition("=")
    owners = list(dict.fromkeys(foreign)) or list(names)
    if equals and name in names:
        owners, file = [name], rest
    if len(owners) != 1:
        raise OptionError(f"--expectations {file}: write NAME=FILE, with NAME one of {', '.join(owners)}.")
    if not Path(file).exists():
        raise OptionError(f"--expectations {file}: there is no such file. --write-expectations {file} drafts one.")
    return {owners[0]: Path(file)}


def _preset_plan(choice: Choice, folder: Path | None, given: Mapping[str, Path], *, strict: bool) -> Plan:
    """Find the preset's file: ``ort_openvino.toml``, or for ``--fallback full`` ``ort_openvino_full.toml``."""
    preset = choice.preset
    own = [file_stem(name, choice.setup.options.get("fallback", "partial")) for name in _named_by(preset.name)]
    names = [*own, *map(file_stem, _named_by(preset.name))]
    file = next((f for n in names if folder and (f := folder / f"{n}.toml").is_file()), None)
    strict = strict and (file is None or file.stem in own)
    if preset.name in given:
        file, strict = given[preset.name], True
    return Plan(
        BackendRef(
            f"{preset.__module__}.{preset.__qualname__}",
            preset.name,
            (choice.setup.device or _default_device(preset.family),),
            dict(choice.setup.options),
        ),
        Expectations.load(file) if file else Expectations(),
        str(file or ""),
        strict,
        preset.name,
        preset.availability().packages,
    )


def _default_device(family: DeviceFamily) -> str:
    return next((d for d in STANDARD_DEVICES if family.knows(d)), family.default)
