# SPDX-License-Identifier: Apache-2.0
"""The command line of both searches: tasks by number, a journal, findings, one table at the end."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabulate import tabulate

from backend_test.search import isolation, sparing
from backend_test.search.findings import KNOWN, Finding, known_reason
from backend_test.search.journal import Journal, JournalError


@dataclass
class Outcome:
    """What came of one task.

    Attributes
    ----------
    category : str
    detail : str
        One line more about it.
    finding : Finding or None
        What is to be written, for a category that is one.
    counts : bool
        Whether it is a fault, which fails the search where it is not known.
    """

    category: str
    detail: str = ""
    finding: Finding | None = None
    counts: bool = False


#: Makes, of a preset and the command line's options, the work on one number.
Maker = Callable[[str, argparse.Namespace], Callable[[int, isolation.Stages], Outcome]]


def main(
    tool: str,
    about: str,
    maker: Maker,
    more: Callable[[argparse.ArgumentParser], None] = lambda parser: None,
    arguments: list[str] | None = None,
) -> int:
    """Run a search, and return the exit code: 1 where a finding is not known. `more` adds options of its own."""
    parser = argparse.ArgumentParser(prog=f"python -m backend_test.{tool}", description=about)
    parser.add_argument(
        "--preset", action="append", help="may be repeated; a preset's name or the dotted path of a backend"
    )
    parser.add_argument("--seed", type=int, default=0, help="task i is a function of the seed and i alone")
    parser.add_argument(
        "--count", type=int, help="tasks a preset; endless by default where --minutes is given, else 1000"
    )
    parser.add_argument("--minutes", type=float, help="all presets together")
    parser.add_argument("--first", type=int, default=0, help="the number of the first task")
    parser.add_argument("--out", type=Path, default=Path("build") / tool, help="journals and findings")
    parser.add_argument("--resume", action="store_true", help="go on with the journal in --out")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at once")
    parser.add_argument("--seconds", type=float, default=20.0, help="of processor time that one step may take")
    parser.add_argument("--memory", type=float, default=4.0, help="GiB that a preset may take beyond the bare engine")
    parser.add_argument("--known", type=Path, default=KNOWN / f"{tool}.toml", help="the list of known findings")
    more(parser)
    options = parser.parse_args(arguments)
    if not hasattr(os, "fork"):
        parser.error("needs fork: Linux or macOS")
    sparing.preload()
    presets = options.preset or ["OrtCpu"]
    new = 0
    deadline = None
    for number, preset in enumerate(presets):
        if options.minutes is not None:
            left = options.minutes * 60 if deadline is None else deadline - time.monotonic()
            if deadline is None:
                deadline = time.monotonic() + left
            share: float | None = time.monotonic() + left / (len(presets) - number)
        else:
            share = None
        try:
            new += _search(tool, preset, maker(preset, options), options, share)
        except JournalError as error:
            parser.error(str(error))
    return 1 if new else 0


def _search(
    tool: str, preset: str, work: Callable[[int, isolation.Stages], Outcome], options: Any, deadline: float | None
) -> int:
    """Search on one preset; return how many signatures are new."""
    root = options.out / preset
    journal = Journal(
        root / "journal.jsonl", {"tool": tool, "preset": preset, "seed": options.seed}, resume=options.resume
    )
    done = journal.done
    count = options.count if options.count is not None or deadline is not None else 1000

    def numbers() -> Iterator[int]:
        i = options.first
        while (count is None or i < options.first + count) and (deadline is None or time.monotonic() < deadline):
            if i not in done:
                yield i
            i += 1

    def spared(i: int, stages: isolation.Stages) -> Outcome:
        sparing.settle(preset)
        return work(i, stages)

    print(f"{tool} on {preset}, seed {options.seed}, into {root}", flush=True)
    started = time.monotonic()
    limits = isolation.Limits(seconds=options.seconds, memory=int(options.memory * isolation.GIB))
    counted = 0
    for i, outcome in isolation.run(spared, numbers(), jobs=options.jobs, limits=limits):
        counted += 1
        entry: dict[str, Any] = {"i": i, "category": outcome.category}
        if outcome.detail:
            entry["detail"] = outcome.detail
        if outcome.finding:
            entry["signature"] = outcome.finding.signature
            entry["counts"] = outcome.counts
            outcome.finding.write(root / ("findings" if outcome.counts else "others"))
        journal.add(entry)
        if sys.stderr.isatty() and counted % 50 == 0:
            print(f"\r{counted} done, {counted / (time.monotonic() - started):.1f} a second", end="", file=sys.stderr)
    seconds = time.monotonic() - started
    journal.close()
    return _summary(preset, journal, options.known, root / "new.toml", counted, seconds)


def _summary(preset: str, journal: Journal, known: Path, draft: Path, counted: int, seconds: float) -> int:
    """Print what was found; write a draft of entries for what is new; return how many that are."""
    categories = Counter(entry["category"] for entry in journal.entries)
    total = sum(categories.values())
    print(
        tabulate([(c, n, f"{100 * n / total:.2f} %") for c, n in categories.most_common()], (preset, "tasks", "share"))
    )
    found = Counter(entry["signature"] for entry in journal.entries if entry.get("counts"))
    first = {entry["signature"]: entry["i"] for entry in reversed(journal.entries) if "signature" in entry}
    rows = []
    drafts = []
    new = 0
    for signature, times in sorted(found.items()):
        reason = known_reason(signature, known)
        new += not reason
        if not reason:
            drafts.append(f'[[finding]]\nsignature = {json.dumps(signature)}\nreason = ""\n')
        rows.append((times, first[signature], signature, reason or "NEW"))
    draft.write_text("\n".join(drafts), encoding="utf-8")
    if rows:
        print(tabulate(rows, ("times", "first", "finding", "known"), maxcolwidths=[None, None, 110, 60]))
    print(
        f"{preset}: {total} tasks ({counted} now, {counted / max(seconds, 1e-9):.1f} a second), "
        f"{len(found)} kinds of findings, {new} of them new",
        flush=True,
    )
    return new
