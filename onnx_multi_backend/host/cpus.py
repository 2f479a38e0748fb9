# SPDX-License-Identifier: Apache-2.0
"""How many CPUs this process may use, and what limits it: an affinity mask, or the quota of a container."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from onnx_multi_backend.host import cgroups
from onnx_multi_backend.host.cgroups import Quota

SYSTEM = Path("/sys/devices/system/cpu")
#: No machine has as many; an engine that is asked for more takes all memory for them.
MOST_THREADS = 10_000


@dataclass(frozen=True)
class Cpus:
    """The CPUs that a process may use.

    Attributes
    ----------
    host : int
        All that the computer has.
    mask : frozenset of int
        Those that the affinity mask allows; a cpuset is part of it.
    quota : Quota, optional
        The processor time that a control group allows.
    system : Path
        Where the computer tells of its cores.
    """

    host: int
    mask: frozenset[int]
    quota: Quota | None = None
    system: Path = field(default=SYSTEM, repr=False, compare=False)

    @property
    def masked(self) -> bool:
        """Whether the affinity mask leaves out CPUs of the computer."""
        return len(self.mask) < self.host

    @property
    def within_quota(self) -> int:
        """The threads that can run all the time; those of the mask where there is no quota.

        A quota is rounded down, and is one at least: with a thread more, the threads together use the quota up before
        the period ends, and a run that is under way waits for the next, for up to 100 ms.
        """
        return len(self.mask) if self.quota is None else max(1, int(self.quota.cpus))

    @property
    def count(self) -> int:
        """The CPUs that can be kept busy."""
        return min(len(self.mask), self.within_quota)

    @functools.cached_property
    def cores(self) -> int:
        """The physical cores of the mask: engines run one thread on each, since two share its units."""
        return _cores(self.mask, self.system)

    @property
    def threads(self) -> int:
        """One thread a core, and no more than the quota allows."""
        return min(self.cores, self.within_quota)

    @property
    def limited(self) -> bool:
        """Whether the process may use less than the computer has."""
        return self.count < self.host

    @property
    def why(self) -> str:
        """What decides about `count`."""
        if self.quota is not None and self.within_quota < len(self.mask):
            return str(self.quota)
        cpus = _cpus(len(self.mask))
        return f"{cpus} of the affinity mask" if self.masked else f"no limit, {cpus}"


def usable(proc: Path = cgroups.PROC, system: Path = SYSTEM) -> Cpus:
    """What this process may use now. A mask and a quota can change while it runs, so both are read at each call.

    Parameters
    ----------
    proc, system : Path
        Where ``/proc`` and ``/sys/devices/system/cpu`` are.
    """
    host = _host(system)
    mask = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(host)
    return Cpus(host, frozenset(mask), cgroups.quota(proc), system)


@functools.cache
def _host(system: Path) -> int:
    """The CPUs that are switched on. ``online`` would tell, but LXC shows a container its own there."""
    present, offline = _listed(system / "present"), _listed(system / "offline")
    return len(present - offline) or os.cpu_count() or 1


@functools.lru_cache(maxsize=16)
def _cores(mask: frozenset[int], system: Path) -> int:
    siblings = (_text(system / f"cpu{cpu}" / "topology" / "thread_siblings_list") or str(cpu) for cpu in mask)
    return len(set(siblings))


def _listed(path: Path) -> set[int]:
    """Numbers as Linux lists them: ``0-3,8``."""
    ranges = re.findall(r"(\d+)(?:-(\d+))?", _text(path))
    return {cpu for first, last in ranges for cpu in range(int(first), int(last or first) + 1)}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _cpus(count: int) -> str:
    return f"{count} CPU" if count == 1 else f"{count} CPUs"
