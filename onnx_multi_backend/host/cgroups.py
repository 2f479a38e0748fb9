# SPDX-License-Identifier: Apache-2.0
"""The CPU quota of this process's control groups, of both versions that Linux has."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

PROC = Path("/proc")


class QuotaFile(NamedTuple):
    """Where a group's quota stands."""

    version: int
    path: Path


class Quota(NamedTuple):
    """Processor time that a group may use, in CPUs: 1.5 is 150 ms in each 100 ms.

    Its threads may run on any CPU until that is used up; then all of them stand still until the period ends.
    """

    cpus: float
    file: QuotaFile

    def __str__(self) -> str:
        unit = "CPU" if self.cpus == 1 else "CPUs"
        return f"a quota of {self.cpus:.3g} {unit} (cgroup v{self.file.version}, {self.file.path})"


def quota(proc: Path = PROC) -> Quota | None:
    """The smallest quota of this process's group and of those around it; None where none of them has one.

    Parameters
    ----------
    proc : Path
        Where ``/proc`` is.
    """
    found = [Quota(cpus, file) for file in quota_files(proc) if (cpus := _read(file)) is not None]
    return min(found, default=None)


@functools.cache
def quota_files(proc: Path) -> Sequence[QuotaFile]:
    """The files in which such quotas stand, those without one included.

    They are looked up once: a quota changes while a process runs (Kubernetes resizes a pod in place), but a process
    hardly ever changes its group, and ``mountinfo`` is long.
    """
    mounts = list(_mounts(_text(proc / "self" / "mountinfo")))
    return tuple(
        file
        for version, group in _groups(_text(proc / "self" / "cgroup"))
        for folder in _folders(group, [(root, point) for kind, root, point in mounts if kind == version])
        if (file := QuotaFile(version, folder / _NAMES[version])).path.exists()
    )


_NAMES = {1: "cpu.cfs_quota_us", 2: "cpu.max"}
_PERIOD = "cpu.cfs_period_us"


def _groups(text: str) -> Iterator[tuple[int, str]]:
    """The process's groups in the hierarchies that may limit CPUs, by version."""
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            yield 2, path
        elif "cpu" in controllers.split(","):
            yield 1, path


def _mounts(text: str) -> Iterator[tuple[int, str, Path]]:
    """Where such hierarchies are mounted: the version, which group is the root of the mount, and the folder."""
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        place, kind = before.split(" "), after.split(" ")
        if len(place) < 5 or len(kind) < 3:
            continue
        root, point = _unescaped(place[3]), Path(_unescaped(place[4]))
        if kind[0] == "cgroup2":
            yield 2, root, point
        elif kind[0] == "cgroup" and "cpu" in kind[2].split(","):
            yield 1, root, point


def _folders(group: str, mounts: Sequence[tuple[str, Path]]) -> Iterator[Path]:
    """The folders of a group and of those around it, as far as they can be seen.

    In a container the path may be the host's, of which nothing is mounted but the container's own part: that is the
    root of the mount then.
    """
    below = [(point, inner) for root, point in mounts if (inner := _inside(group, root)) is not None]
    for point, inner in below or [(point, PurePosixPath()) for _, point in mounts[:1]]:
        folder = point / inner
        if not folder.is_dir():
            folder = point
        yield folder
        while folder != point:
            folder = folder.parent
            yield folder


def _inside(group: str, root: str) -> PurePosixPath | None:
    path = PurePosixPath(group)
    return path.relative_to(root) if path.is_relative_to(root) and ".." not in path.parts else None


def _read(file: QuotaFile) -> float | None:
    """A group's quota in CPUs; None where it has none, or one that cannot be read."""
    words = _text(file.path).split()
    if not words or not words[0].isdecimal():  # "max", "-1"
        return None
    if file.version == 1:
        words += _text(file.path.parent / _PERIOD).split()
    if len(words) != 2 or not words[1].isdecimal():
        return None
    time, period = map(int, words)
    return time / period if time and period else None


def _text(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes())
    except OSError:
        return ""


def _unescaped(path: str) -> str:
    """A path of ``mountinfo``, which has a backslash and three octal digits for a space."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)
