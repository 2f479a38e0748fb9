# SPDX-License-Identifier: Apache-2.0
"""Control groups (cgroups) with a CPU quota, made beside this process's own where that is allowed."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from onnx_multi_backend.host import cgroups

PERIOD = 100_000

#: A group's weight, in ordinary groups': so the other work of a host that is not quiet takes less from it.
WEIGHT = 8


class Group(NamedTuple):
    """A group that commands can be started in.

    Attributes
    ----------
    command : list of str
        What stands in front of such a command.
    folder : Path, optional
        Where its statistics are.
    """

    command: list[str]
    folder: Path | None = None

    def throttled(self) -> tuple[int, int]:
        """Periods so far, and those of them in which the group was held up."""
        if self.folder is None:
            return 0, 0
        said = dict(line.split() for line in (self.folder / "cpu.stat").read_text().splitlines())
        return int(said.get("nr_periods", 0)), int(said.get("nr_throttled", 0))


@contextlib.contextmanager
def with_quota(cpus: float, name: str) -> Iterator[Group]:
    """A group with a quota of so many CPUs; SystemExit says why none can be had."""
    faults = []
    for version, file in cgroups.quota_files(cgroups.PROC):
        folder = file.parent / f"{name}-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError as error:
            faults.append(f"{folder}: {error.strerror}")
            continue
        try:
            try:
                _limit(version, folder, cpus)
            except OSError as error:
                faults.append(f"{folder}: {error.strerror}")
                continue
            yield Group(["sh", "-c", f'echo $$ > "{folder}/cgroup.procs" && exec "$@"', "sh"], folder)
            return
        finally:
            folder.rmdir()
    command = ["systemd-run", "--scope", "--quiet", "-p", f"CPUQuota={cpus:.0%}"]
    if shutil.which(command[0]) is None:
        faults.append("there is no systemd-run")
    elif (done := subprocess.run([*command, "true"], check=False, capture_output=True, text=True)).returncode:
        faults.append(f"systemd-run: {done.stderr.strip().splitlines()[-1]}")
    else:
        yield Group(command)
        return
    raise SystemExit(f"No quota can be had here: {'; '.join(faults)}.")


def _limit(version: int, folder: Path, cpus: float) -> None:
    time = str(int(cpus * PERIOD))
    if version == 1:
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD))
        (folder / "cpu.cfs_quota_us").write_text(time)
        (folder / "cpu.shares").write_text(str(WEIGHT * 1024))
        return
    if not (folder / "cpu.max").exists():
        (folder.parent / "cgroup.subtree_control").write_text("+cpu")
    (folder / "cpu.max").write_text(f"{time} {PERIOD}")
    (folder / "cpu.weight").write_text(str(WEIGHT * 100))
