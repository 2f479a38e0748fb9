# SPDX-License-Identifier: Apache-2.0
"""The CPU quota of a process, out of trees of files such as Linux shows in and around containers."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnx_multi_backend.host import cgroups


class Tree:
    """A made ``/proc`` and the mounts that it tells of."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.mounts = folder / "proc", folder / "sys" / "fs" / "cgroup"
        (self.proc / "self").mkdir(parents=True)
        self._lines: list[str] = []

    def groups(self, *lines: str) -> None:
        (self.proc / "self" / "cgroup").write_text("".join(f"{line}\n" for line in lines))

    def mount(self, name: str, kind: str, options: str = "rw", root: str = "/") -> Path:
        """Mount a hierarchy, and tell the folder."""
        point = self.mounts / name
        point.mkdir(parents=True, exist_ok=True)
        written = str(point).replace(" ", r"\040")
        self._lines.append(f"31 23 0:28 {root} {written} rw,relatime shared:9 - {kind} {kind} {options}\n")
        (self.proc / "self" / "mountinfo").write_text("".join(self._lines))
        return point

    def v2(self, folder: Path, text: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpu.max").write_text(text)

    def v1(self, folder: Path, quota: str, period: str = "100000\n") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpu.cfs_quota_us").write_text(quota)
        (folder / "cpu.cfs_period_us").write_text(period)

    @property
    def quota(self) -> cgroups.Quota | None:
        return cgroups.quota(self.proc)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def test_version_2(tree: Tree) -> None:
    tree.groups("0::/app")
    point = tree.mount("", "cgroup2")
    tree.v2(point / "app", "150000 100000\n")
    assert tree.quota == (1.5, (2, point / "app" / "cpu.max"))
    assert str(tree.quota) == f"a quota of 1.5 CPUs (cgroup v2, {point}/app/cpu.max)"


def test_version_1(tree: Tree) -> None:
    tree.groups("9:name=systemd:/", "4:memory:/elsewhere", "3:cpu,cpuacct:/app", "1:cpuset:/other", "0::/")
    tree.mount("memory", "cgroup", "rw,memory")
    tree.mount("unified", "cgroup2")
    point = tree.mount("cpu,cpuacct", "cgroup", "rw,cpu,cpuacct")
    tree.v1(point / "app", "50000\n", "50000\n")
    assert tree.quota == (1.0, (1, point / "app" / "cpu.cfs_quota_us"))
    assert str(tree.quota).startswith("a quota of 1 CPU (cgroup v1, ")


def test_a_group_named_cpuset_is_none_of_cpu(tree: Tree) -> None:
    tree.groups("3:cpuset:/app")
    point = tree.mount("cpuset", "cgroup", "rw,cpuset")
    tree.v1(point / "app", "50000\n")
    assert tree.quota is None


@pytest.mark.parametrize("version", [1, 2])
def test_the_smallest_of_the_group_and_those_around_it_counts(tree: Tree, version: int) -> None:
    def write(folder: Path, quota: str) -> None:
        if version == 1:
            tree.v1(folder, quota)
        else:
            tree.v2(folder, f"{quota.replace('-1', 'max')} 100000")

    tree.groups("1:cpu:/a/b/c" if version == 1 else "0::/a/b/c")
    point = tree.mount("x", *(("cgroup", "rw,cpu") if version == 1 else ("cgroup2",)))
    write(point / "a" / "b" / "c", "400000")
    write(point / "a" / "b", "-1")
    write(point / "a", "200000")
    assert tree.quota is not None
    assert (tree.quota.cpus, tree.quota.file.path.parent) == (2.0, point / "a")
    write(point / "a" / "b" / "c", "100000")
    assert (tree.quota.cpus, tree.quota.file.path.parent) == (1.0, point / "a" / "b" / "c")
    write(point / "a" / "b" / "other", "1000")
    assert tree.quota.cpus == 1.0


def test_a_quota_that_changes_while_the_process_runs(tree: Tree) -> None:
    tree.groups("0::/")
    point = tree.mount("", "cgroup2")
    tree.v2(point, "max 100000")
    assert tree.quota is None
    tree.v2(point, "300000 100000")
    assert tree.quota is not None
    assert tree.quota.cpus == 3


def test_a_container_that_sees_the_hosts_path_has_its_own_part_mounted(tree: Tree) -> None:
    """Docker with cgroups of version 1: the root of the mount is the container's group."""
    tree.groups("3:cpu:/docker/4f1c")
    point = tree.mount("cpu", "cgroup", "ro,cpu", root="/docker/4f1c")
    tree.v1(point, "250000")
    assert tree.quota is not None
    assert tree.quota.cpus == 2.5


@pytest.mark.parametrize("group", ["/kubepods/pod1/4f1c", "/../other", "/docker/../../x"])
@pytest.mark.parametrize("root", ["/", "/../.."])
def test_a_path_that_is_not_there_is_the_root_of_the_mount(tree: Tree, group: str, root: str) -> None:
    tree.groups(f"0::{group}")
    tree.v2(tree.mount("", "cgroup2", root=root), "200000 100000")
    assert tree.quota is not None
    assert tree.quota.cpus == 2


def test_another_containers_mount_is_not_ours(tree: Tree) -> None:
    tree.groups("3:cpu:/docker/ours")
    tree.v1(tree.mount("others", "cgroup", "rw,cpu", root="/docker/others"), "10000")
    tree.v1(tree.mount("cpu", "cgroup", "rw,cpu", root="/docker/ours"), "200000")
    assert tree.quota is not None
    assert tree.quota.cpus == 2


def test_both_versions_at_once(tree: Tree) -> None:
    tree.groups("1:cpu:/", "0::/")
    tree.v1(tree.mount("cpu", "cgroup", "rw,cpu"), "300000")
    tree.v2(tree.mount("unified", "cgroup2"), "200000 100000")
    assert tree.quota is not None
    assert tree.quota.cpus == 2


def test_a_folder_with_a_space(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "a folder")
    tree.groups("0::/an app")
    tree.v2(tree.mount("", "cgroup2") / "an app", "100000 100000")
    assert tree.quota is not None


@pytest.mark.parametrize("text", ["max 100000\n", "max", "", "\n", "100000", "a b", "-5 100000", "0 100000", "1 0"])
def test_what_is_no_quota_of_version_2(tree: Tree, text: str) -> None:
    tree.groups("0::/")
    tree.v2(tree.mount("", "cgroup2"), text)
    assert tree.quota is None


@pytest.mark.parametrize(
    ("quota", "period"),
    [("-1", "100000"), ("", "100000"), ("100000", ""), ("0", "100000"), ("100000", "0"), ("x", "y"), ("1 2", "100000")],
)
def test_what_is_no_quota_of_version_1(tree: Tree, quota: str, period: str) -> None:
    tree.groups("1:cpu:/")
    tree.v1(tree.mount("cpu", "cgroup", "rw,cpu"), quota, period)
    assert tree.quota is None


def test_bytes_that_are_no_text(tree: Tree) -> None:
    tree.groups("0::/")
    point = tree.mount("", "cgroup2")
    (point / "cpu.max").write_bytes(b"\xff\xfe 100000")
    assert tree.quota is None


@pytest.mark.parametrize("missing", ["cgroup", "mountinfo", "cpu.max"])
def test_files_that_are_not_there(tree: Tree, missing: str) -> None:
    tree.groups("0::/")
    tree.v2(tree.mount("", "cgroup2"), "100000 100000")
    next(path for folder in (tree.proc, tree.mounts) for path in folder.rglob(missing)).unlink()
    assert tree.quota is None


@pytest.mark.parametrize("text", ["", "\n", "::", "0", "nonsense\n", "31 23 - \n", "a b c d e - cgroup2\n"])
def test_lines_that_say_nothing(tree: Tree, text: str) -> None:
    tree.groups("0::/")
    for name in ("mountinfo", "cgroup"):
        (tree.proc / "self" / name).write_text(text)
        assert tree.quota is None
