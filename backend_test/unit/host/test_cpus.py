# SPDX-License-Identifier: Apache-2.0
"""How many CPUs a process may use, and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from onnx_multi_backend.host import cpus
from onnx_multi_backend.host.cgroups import Quota, QuotaFile
from onnx_multi_backend.host.cpus import Cpus

FILE = QuotaFile(2, Path("/sys/fs/cgroup/cpu.max"))


def made(host: int, mask: int, quota: float | None = None, system: Path = Path("/nowhere")) -> Cpus:
    return Cpus(host, frozenset(range(mask)), None if quota is None else Quota(quota, FILE), system)


@pytest.mark.parametrize(
    ("host", "mask", "quota", "count", "why"),
    [
        (16, 16, None, 16, "no limit, 16 CPUs"),
        (1, 1, None, 1, "no limit, 1 CPU"),
        (16, 2, None, 2, "2 CPUs of the affinity mask"),
        (16, 1, None, 1, "1 CPU of the affinity mask"),
        (16, 16, 1.5, 1, "a quota of 1.5 CPUs (cgroup v2, /sys/fs/cgroup/cpu.max)"),
        (16, 16, 0.25, 1, "a quota of 0.25 CPUs (cgroup v2, /sys/fs/cgroup/cpu.max)"),
        (16, 16, 3.99, 3, "a quota of 3.99 CPUs (cgroup v2, /sys/fs/cgroup/cpu.max)"),
        (16, 4, 2.0, 2, "a quota of 2 CPUs (cgroup v2, /sys/fs/cgroup/cpu.max)"),
        (16, 4, 8.0, 4, "4 CPUs of the affinity mask"),
        (16, 4, 4.5, 4, "4 CPUs of the affinity mask"),
        (16, 16, 64.0, 16, "no limit, 16 CPUs"),
    ],
)
def test_the_smallest_counts_and_is_named(host: int, mask: int, quota: float | None, count: int, why: str) -> None:
    here = made(host, mask, quota)
    assert (here.count, here.why) == (count, why)
    assert here.limited is (count < host)
    assert here.threads == count, "nothing is known of cores, so each CPU is one"


def topology(folder: Path, siblings: list[str]) -> Path:
    for cpu, text in enumerate(siblings):
        (folder / f"cpu{cpu}" / "topology").mkdir(parents=True)
        (folder / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(f"{text}\n")
    return folder


def test_two_threads_of_a_core_are_one(tmp_path: Path) -> None:
    system = topology(tmp_path, ["0,4", "1,5", "2,6", "3,7"] * 2)
    assert made(8, 8, None, system).threads == 4
    assert made(8, 2, None, system).threads == 2
    assert Cpus(8, frozenset({0, 4}), None, system).threads == 1
    assert made(8, 8, 6.0, system).threads == 4
    assert made(8, 8, 3.0, system).threads == 3


def test_what_the_host_has_is_what_is_switched_on(tmp_path: Path) -> None:
    """A container of LXC reads its own CPUs in ``online``, and the host's in the other files."""
    (tmp_path / "present").write_text("0-7\n")
    (tmp_path / "offline").write_text("6-7,8-127\n")
    (tmp_path / "online").write_text("0-1\n")
    assert cpus.usable(tmp_path, tmp_path).host == 6


def test_without_these_files_python_tells(tmp_path: Path) -> None:
    here = cpus.usable(tmp_path, tmp_path)
    assert here.host == os.cpu_count()
    assert here.quota is None


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="there are no affinity masks here")
def test_the_mask_is_this_process_s(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cpus.usable().mask == {min(before)}
        assert cpus.usable().count == 1
    finally:
        os.sched_setaffinity(0, before)


def test_elsewhere_every_cpu_is_allowed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Mocked: Windows and macOS have no such mask."""
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    here = cpus.usable(tmp_path, tmp_path)
    assert (len(here.mask), here.limited) == (here.host, False)
