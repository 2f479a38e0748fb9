# SPDX-License-Identifier: Apache-2.0
"""Tasks in worker processes with limits of time and memory: a crash costs one task, and is known for what it is.

A worker says which stage of its task it enters. Where it dies, hangs or takes too much memory, the same task is given to
a fresh worker: a stage that fails there again is passed over with that as its answer. Workers are forked from this process,
which imports no engine and so has no threads.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from backend_test.search.answers import DEAD, FATAL, HANG, MEMORY, Answer

GIB = 1 << 30
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
#: Seconds between two looks at a worker's memory and time.
_TICK = 0.05
#: A stage that has taken so many times its limit by the clock hangs, however little of the processor it had.
_WALL = 10.0
#: Stages whose fatal end must come twice.
_CONFIRMED = ("ours", "compatibility")
#: Tasks after which a worker is replaced, so that what engines keep does not add up.
_LIFETIME = 400


@dataclass
class Limits:
    """What a stage may take.

    Attributes
    ----------
    seconds : float
        Of processor time; ten times as much of the clock's.
    memory : int
        Bytes beyond what the process had at the stage's beginning.
    """

    seconds: float = 20.0
    memory: int = 4 * GIB


class Stages:
    """What a task's function gets: it enters its stages through this.

    Attributes
    ----------
    fates : dict of str to Answer
        The stages that ended a worker, and how.
    """

    def __init__(self, connection: Connection, fates: dict[str, Answer], limits: Limits) -> None:
        self._connection, self.fates, self._limits = connection, fates, limits
        self.taken: dict[str, int] = {}

    def run(
        self, name: str, work: Callable[[Callable[[str], None]], Answer], extra: int = 0, seconds: float | None = None
    ) -> Answer:
        """Do one stage's work, or return how it ended a worker before.

        Parameters
        ----------
        name : str
        work : callable
            Of a function that it calls with the place it is at, ``prepare`` or ``run``: the clock starts anew there.
        extra : int
            Bytes of memory that it may take beyond the limit.
        seconds : float, optional
            A shorter limit of its time.
        """
        if name in self.fates:
            return self.fates[name]
        base = _forget_peak()
        limit = self._limits.memory + extra
        allowed = self._limits.seconds if seconds is None else seconds

        def note(place: str) -> None:
            self._connection.send(("stage", f"{name}:{place}", limit, allowed))

        note("")
        answer = work(note)
        self.taken[name] = max(0, _peak() - base)
        if self.taken[name] > limit:  # between two looks of the watching process
            return Answer(MEMORY, error=f"{self.taken[name] / GIB:.1f} GiB")
        return answer


Work = Callable[[Any, Stages], Any]


@dataclass
class _Task:
    key: Any
    fates: dict[str, Answer] = field(default_factory=dict)
    may_have_defect: dict[str, str] = field(default_factory=dict)


class _Worker:
    def __init__(self, work: Work, limits: Limits) -> None:
        context = multiprocessing.get_context("fork")
        handle, name = tempfile.mkstemp(prefix="search-", suffix=".txt")
        os.close(handle)
        self.words = Path(name)
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(work, theirs, limits, name), daemon=True)
        self.process.start()
        theirs.close()
        self.task: _Task | None = None
        self.limits = limits
        self.stage, self.limit, self.seconds, self.base = "", 0, limits.seconds, 0
        self.entered, self.cpu = time.monotonic(), 0.0
        self.done, self.fresh = 0, True

    def give(self, task: _Task) -> None:
        self.task = task
        self._enter("", 4 * GIB, self.limits.seconds)
        with contextlib.suppress(BrokenPipeError):
            self.connection.send((task.key, task.fates))

    def _enter(self, stage: str, limit: int, seconds: float) -> None:
        if stage.partition(":")[0] != self.stage.partition(":")[0] or not stage:
            self.base = _resident(self.process.pid)
        self.stage, self.limit, self.seconds = stage, limit, seconds
        self.entered, self.cpu = time.monotonic(), _cpu_seconds(self.process.pid)

    def messages(self) -> Iterator[Any]:
        """What it has said; stages are noted."""
        with contextlib.suppress(EOFError, ConnectionResetError, OSError):
            while self.connection.poll():
                message = self.connection.recv()
                if message[0] == "stage":
                    self._enter(*message[1:])
                else:
                    yield message

    def excess(self) -> str:
        """Which limit it is beyond; empty when none."""
        if _resident(self.process.pid) - self.base > self.limit:
            return MEMORY
        wall = time.monotonic() - self.entered
        if wall <= self.seconds:
            return ""
        used = _cpu_seconds(self.process.pid) - self.cpu
        return HANG if used > self.seconds or wall > _WALL * self.seconds else ""

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            self.process.kill()
        self.process.join()
        self.connection.close()
        self.words.unlink(missing_ok=True)

    def last_words(self) -> str:
        with contextlib.suppress(OSError):
            lines = self.words.read_bytes()[-2000:].decode(errors="replace").strip().splitlines()
            return lines[-1][:300] if lines else ""
        return ""


def run(work: Work, keys: Iterable[Any], *, jobs: int, limits: Limits | None = None) -> Iterator[tuple[Any, Any]]:
    """Do tasks in workers, and yield each one's key and result as it comes.

    Parameters
    ----------
    work : callable
        Of a key and its `Stages`, in a worker.
    keys : iterable
        What is asked for a key once a worker is free, so it may be endless.
    jobs : int
        Workers at once.
    limits : Limits, optional
    """
    limits = limits or Limits()
    coming, again = iter(keys), deque[_Task]()
    workers = [_Worker(work, limits) for _ in range(jobs)]
    more = True
    try:
        while True:
            for worker in list(workers):
                if worker.task is not None:
                    continue
                if again:
                    task = again.popleft()
                else:
                    key = next(coming, None) if more else None
                    if key is None:
                        more = False
                        continue
                    task = _Task(key)
                if worker.done >= _LIFETIME or (task.may_have_defect and worker.done):
                    workers.remove(worker)
                    worker.end()
                    worker = _Worker(work, limits)
                    workers.append(worker)
                worker.give(task)
            busy = [w for w in workers if w.task is not None]
            if not busy:
                return
            wait([sign for w in busy for sign in (w.connection, w.process.sentinel)], _TICK)
            for worker in busy:
                died = not worker.process.is_alive()
                for message in worker.messages():
                    assert worker.task is not None
                    task, worker.task = worker.task, None
                    worker.done += 1
                    yield task.key, message[1]
                if worker.task is None:
                    continue
                fate = DEAD if died else worker.excess()
                if fate:
                    workers.remove(worker)
                    again.append(_judge_death(worker, fate))
                    worker.end()
                    workers.append(_Worker(work, limits))
    finally:
        for worker in workers:
            worker.end()


def _judge_death(worker: _Worker, fate: str) -> _Task:
    """Note how a stage ended a worker; what counts has to do so in a fresh one too before it is the answer."""
    task = worker.task
    assert task is not None
    stage, _, place = worker.stage.partition(":")
    if fate == DEAD:
        worker.process.join(5)
        error = f"{_how(worker.process.exitcode)} {worker.last_words()}".strip()
    else:
        error = f"more than {worker.seconds:g} s" if fate == HANG else f"more than {worker.limit / GIB:.1f} GiB"
    if not stage and stage not in task.may_have_defect:  # what broke its memory may have been another task
        task.may_have_defect[stage] = fate
        return task
    if not stage:
        raise RuntimeError(f"the task {task.key!r} ended its worker outside any stage: {error}")
    confirmed = task.may_have_defect.get(stage) == fate or stage.split(" ")[-1] not in _CONFIRMED
    if fate in FATAL and confirmed:
        task.fates[stage] = Answer(fate, error=error, place=place)
    task.may_have_defect[stage] = fate
    return task


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return signal.Signals(-code).name
    return f"exit status {code}"


def _serve(work: Work, connection: Connection, limits: Limits, words: str) -> None:
    """A worker's life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    output = os.open(words, os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(output, number)
    while True:
        try:
            key, fates = connection.recv()
        except (EOFError, OSError):
            os._exit(0)
        os.ftruncate(output, 0)
        result = work(key, Stages(connection, fates, limits))
        sys.stdout.flush()
        connection.send(("done", result))


def _end_with_parent() -> None:
    """Have the kernel end this process when its parent is gone, whatever it is at (Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


# Linux tells these of a process; elsewhere memory and processor time are not watched.


def _resident(pid: int | None) -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    return 0


def _cpu_seconds(pid: int | None) -> float:
    with contextlib.suppress(OSError, IndexError, ValueError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def _forget_peak() -> int:
    """Have the kernel measure the peak of memory anew; return what is resident now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _resident(os.getpid())


def _peak() -> int:
    with contextlib.suppress(OSError, IndexError, ValueError):
        text = Path("/proc/self/status").read_text()
        return int(text.partition("VmHWM:")[2].split()[0]) * 1024
    return 0
