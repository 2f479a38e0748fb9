# SPDX-License-Identifier: Apache-2.0
"""The tail of a run under a CPU quota: the threads that this package sets, beside as many as the engine takes by itself."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import groups, models
from benchmarks.groups import Group

TURNS, RUNS = 8, 100
OURS, THEIRS = "ours", "the engine's own"

#: How an engine is asked for its own number of threads, and for one.
_ENGINES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "OrtCpu": ({"session_options": {"intra_op_num_threads": 0}}, {"intra_op_num_threads": 1}),
    "Openvino": ({"INFERENCE_NUM_THREADS": 0}, {"INFERENCE_NUM_THREADS": 1}),
}

#: Runs so often as it is told to, with so many seconds from the start of one to that of the next, and prints what each took.
_RUNNER = """
import json, sys, time
import onnx_multi_backend as omb
from benchmarks import models
x = models.recognition_input()
rep = omb.prepare(models.recognition(), preset=sys.argv[1], cache_dir=False, **json.loads(sys.argv[2]))
for _ in range(20):
    rep.run(x)
print("ready", flush=True)
for line in sys.stdin:
    runs, pace = json.loads(line)
    found, due = [], time.perf_counter()
    for _ in range(runs):
        started = time.perf_counter()
        rep.run(x)
        ended = time.perf_counter()
        found.append(ended - started)
        due = max(due + pace, ended)
        time.sleep(due - ended)
    print(json.dumps(found), flush=True)
"""


class Runner:
    """A process in a group that has a model and runs it when it is told to."""

    def __init__(self, group: Group, preset: str, options: Mapping[str, Any]) -> None:
        self.group = group
        command = [*group.command, sys.executable, "-c", _RUNNER, preset, json.dumps(options)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._read()

    def start(self, runs: int, pace: float) -> None:
        """Have it run."""
        assert self._process.stdin is not None
        print(json.dumps([runs, pace]), file=self._process.stdin, flush=True)

    def times(self) -> list[float]:
        """What each of these runs took."""
        found: list[float] = json.loads(self._read())
        return found

    def end(self) -> None:
        """Close its standard input, at which it ends."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("A process under the quota ended.")
        return line


@contextlib.contextmanager
def _runners(preset: str, wanted: Mapping[str, Mapping[str, Any]], in_groups: Sequence[Group]) -> Iterator[Any]:
    """For each name of options a runner in each group."""
    made = {name: [Runner(group, preset, options) for group in in_groups] for name, options in wanted.items()}
    try:
        yield made
    finally:
        for runner in (r for several in made.values() for r in several):
            runner.end()


def _measure(label: str, made: Mapping[str, Sequence[Runner]], pace: float) -> list[dict[str, Any]]:
    """Turns of each; those of one name run at once. The rows have the median and the 99th percentile of all runs."""
    times: dict[str, list[list[float]]] = {name: [] for name in made}
    held: dict[str, list[int]] = {name: [0, 0] for name in made}
    for turn in range(TURNS):
        for name in made if turn % 2 == 0 else reversed(made):
            time.sleep(0.3)  # until threads spin no more, and a new period has begun
            before = [runner.group.throttled() for runner in made[name]]
            for runner in made[name]:
                runner.start(RUNS, pace)
            times[name].append([seconds for runner in made[name] for seconds in runner.times()])
            for runner, (periods, throttled) in zip(made[name], before, strict=True):
                now = runner.group.throttled()
                held[name][0] += now[0] - periods
                held[name][1] += now[1] - throttled
    told = ", ".join(f"{name} {throttled / max(1, periods):.0%}" for name, (periods, throttled) in held.items())
    print(f"{label}: periods in which the group was held up: {told}", file=sys.stderr, flush=True)
    return [_row(label, percent, times, held) for percent in (50, 99)]


def _row(label: str, percent: int, times: Mapping[str, list[list[float]]], held: Mapping[str, list[int]]) -> Any:
    def percentile(values: list[float]) -> float:
        return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]

    whole = {name: percentile([seconds for turn in turns for seconds in turn]) for name, turns in times.items()}
    spread = {name: statistics.quantiles(map(percentile, turns), n=4) for name, turns in times.items()}
    ours, theirs = whole
    return {
        "measure": f"p{percent}, {label}",
        "ours": ours,
        "theirs": theirs,
        "ratio": whole[ours] / whole[theirs],
        "limit": 1.0 if percent == 99 else 1.5,
        "unit": "s",
        "ours_median": whole[ours],
        "theirs_median": whole[theirs],
        "ours_quartiles": [spread[ours][0], spread[ours][2]],
        "theirs_quartiles": [spread[theirs][0], spread[theirs][2]],
        "rounds": TURNS,
        "held_up": dict(held),
    }


def quota(folder: Path) -> list[dict[str, Any]]:
    """PP-OCRv4's recognition under quotas, back to back and with pauses; without one; and in two groups at once."""
    models.recognition()
    rows = []
    for preset, (own_number, one) in _ENGINES.items():
        for cpus, arms in (
            (1.0, {OURS: {}, THEIRS: own_number}),
            (1.5, {OURS: {}, THEIRS: own_number}),
            (float(os.cpu_count() or 1), {"one thread": one, THEIRS: own_number}),  # no limit: what the threads gain
        ):
            with groups.with_quota(cpus, "omb-quota") as group, _runners(preset, arms, [group]) as made:
                label = f"{preset}, a quota of {cpus:g}"
                rows += _measure(f"{label}, back to back", made, 0)
                if cpus == 1:
                    rows += _measure(f"{label}, 20 a second", made, 0.05)
    with groups.with_quota(1, "omb-one") as first, groups.with_quota(1, "omb-two") as second:
        arms = {OURS: {}, "one thread, pinned": {"INFERENCE_NUM_THREADS": 1}}
        with _runners("Openvino", arms, [first, second]) as made:
            rows += _measure("Openvino, two groups with a quota of 1, back to back", made, 0)
    return rows
