# SPDX-License-Identifier: Apache-2.0
"""README's table of results says what the baselines hold, and its presets and devices are those of the code."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

import onnx_multi_backend as omb
from onnx_multi_backend import backend
from onnx_multi_backend.cli.conformance_plan import file_stem
from onnx_multi_backend.presets.registry import PART_OF

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
BASELINES = ROOT / "backend_test" / "baselines"


def rows(head: str) -> list[list[str]]:
    """The cells of the table whose first line starts so."""
    lines = iter(README.read_text(encoding="utf-8").splitlines())
    next(line for line in lines if line.startswith(head))
    next(lines)
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return table


RESULTS = rows("| preset | engine | passed |")


def stem_of(preset: str) -> str:
    """The name of the baseline that a first cell stands for: ```OrtOpenvino`, `Float`, `Int8` ``."""
    first, *others = re.findall(r"`([^`]+)`", preset)
    name, _, full = first.partition("(")
    assert all(PART_OF[name + other] == name for other in others)
    return file_stem(name, "full" if full else "partial")


def release(engine: str) -> str:
    """The release in a baseline's name."""
    major, minor = re.findall(r" (\d+)\.(\d+)", engine)[-1]
    return f"{'plugin-' if 'plugin' in engine else ''}{major}.{minor}"


@pytest.mark.parametrize("row", RESULTS, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_results_are_those_of_the_baselines(row: list[str]) -> None:
    preset, engine, *figures = row
    passed, native, adapted, fallback, refused, known = (int(figure.replace(",", "") or 0) for figure in figures)
    assert passed == native + adapted + fallback
    path = BASELINES / f"{stem_of(preset)}@{release(engine)}.json"
    cases = json.loads(path.read_text(encoding="utf-8"))["cases"]
    held = Counter(cases.values())
    assert passed + refused + known == len(cases), path.name
    found = (native, adapted, fallback, refused, known)
    assert found == tuple(held[k] for k in ("native", "adapted", "fallback", "unsupported", "xfail")), path.name


def test_every_row_of_results_is_looked_at() -> None:
    assert len(RESULTS) == 7


def test_the_scoreboard_says_what_the_baselines_hold() -> None:
    compared = 0
    for row in rows("| backend | engine | devices |"):
        preset = row[0].strip("`").partition(" ")[0]
        if preset not in omb.presets():
            continue  # another package's backend, which has no baseline
        cases = json.loads((BASELINES / f"{file_stem(preset, 'partial')}@{release(row[1])}.json").read_text("utf-8"))[
            "cases"
        ]
        held = Counter(cases.values())
        labels = ("native", "adapted", "fallback", "pass", "unsupported", "xfail", "fail")
        assert [int(figure) for figure in row[5:12]] == [held[label] for label in labels], row[0]
        passed = sum(held[label] for label in labels[:4])
        assert row[3:5] == [str(len(cases)), f"{passed} ({1000 * passed // len(cases) / 10:.1f} %)"], row[0]
        compared += 1
    assert compared == 4


def test_the_presets_are_all_there() -> None:
    named = [re.findall(r"`(\w+)`", row[0])[0] for row in rows("| preset | engine and provider |")]
    assert named == [f"{name}Backend" for name in omb.presets() if hasattr(omb, f"{name}Backend")]


def test_a_device_chooses_the_preset_that_the_table_names() -> None:
    told = {
        row[0].strip("`").partition("[")[0]: re.findall(r"`(\w+)`", row[1])[-1] for row in rows("| device | preset |")
    }
    assert told.pop("GPU") == "Openvino"
    assert told == {device: preset for device, (preset, _) in backend._ROUTES.items()}
