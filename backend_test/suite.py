# SPDX-License-Identifier: Apache-2.0
"""Plugging a preset into the official suite, with the files that go with it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnx_multi_backend.cli.conformance_plan import FOLDER, file_stem
from onnx_multi_backend.conformance.pytest_suite import plug
from onnx_multi_backend.presets.answers import Availability
from onnx_multi_backend.presets.registry import PART_OF, get_preset

HERE = Path(__file__).parent


def plug_preset(
    name: str,
    module: str,
    *,
    devices: Sequence[str] = ("CPU",),
    skip: str | None = None,
    **options: Any,
) -> dict[str, type]:
    """Make the test classes of a preset, with its expectations and its baseline.

    Labels differ from one engine version to the next, so a baseline is kept for each:
    ``baselines/<stem>@<engine's major.minor>.json``, and for a plugin execution provider, whose release counts,
    ``<stem>@plugin-<major.minor>.json``. What is expected to fail comes with the package,
    ``onnx_multi_backend/conformance/known/<stem>.toml``, and has ``when`` for that. Presets that are a part of another one share its
    files.

    Parameters
    ----------
    name : str
        The preset.
    module : str
        The test module's ``__name__``, ``test_<module>``.
    devices : sequence of str
        The devices to run each case on.
    skip : str, optional
        Why the suite cannot run on this preset even where the preset is usable.
    **options
        Passed to every ``prepare``.
    """
    preset = get_preset(name)
    state = preset.availability()
    stem = file_stem(PART_OF.get(name, name), options.get("fallback", "partial"))
    expectations = FOLDER / f"{stem}.toml"
    return plug(
        preset,
        module=module,
        name=f"{name} fallback={options['fallback']}" if "fallback" in options else name,
        devices=devices,
        options=options,
        expectations=expectations if expectations.exists() else None,
        baseline=baseline_path(stem, state),
        engines=list(state.packages),
        unusable=skip if state.usable else f"{state.reason}. {state.cure}",
    )


def baseline_path(stem: str, state: Availability) -> Path:
    """Where the baseline of a preset lies, for the engine that is installed."""
    version = next(reversed(state.packages.values()), "")
    release = ("plugin-" if state.is_plugin else "") + ".".join(version.split(".")[:2])
    return HERE / "baselines" / f"{stem}@{release}.json"
