# SPDX-License-Identifier: Apache-2.0
"""Several workers at once; one that dies is replaced."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait

from onnx_multi_backend.conformance.backend_ref import BackendLoadError, BackendRef
from onnx_multi_backend.conformance.case_facts import CaseFacts
from onnx_multi_backend.conformance.cases import Case
from onnx_multi_backend.conformance.interrupts import uninterrupted
from onnx_multi_backend.conformance.labels import Label
from onnx_multi_backend.conformance.results import CaseResult
from onnx_multi_backend.conformance.workers.child import describe
from onnx_multi_backend.conformance.workers.worker import Worker, how_it_ended, make_context
from onnx_multi_backend.errors import RunError

#: Seconds that a case may take.
TIMEOUT = 120.0
#: The most that it may take: a day, which every clock that is waited on can hold.
MAX_TIMEOUT = 86_400.0


def load_worker(ref: BackendRef, timeout: float = TIMEOUT, memory: int | None = None) -> Worker:
    """Start a worker, and wait until it has loaded the backend. Whoever asks for it has to end it.

    Raises
    ------
    BackendLoadError
        The backend cannot be loaded, or does not support its devices.
    """
    worker = Worker(ref, timeout, make_context(), memory)
    try:
        worker.load()
    except BaseException:  # an interrupt too must leave no process behind
        worker.end()
        raise
    return worker


def run_in_workers(
    ref: BackendRef,
    cases: Sequence[Case],
    *,
    jobs: int,
    timeout: float = TIMEOUT,
    memory: int | None = None,
    first: Worker | None = None,
) -> Iterator[CaseResult]:
    """Run cases in worker processes, and yield each result as it comes.

    A case whose worker dies is a `crash`, one that takes too long a `timeout`. A worker that cannot load the backend is
    not replaced; once none is left, the other cases are a `crash` that says so. Leaving the iterator early, by an
    exception too, stops the workers.

    Parameters
    ----------
    ref : BackendRef
    cases : sequence of Case
    jobs : int
        Processes at once.
    timeout : float
        Seconds that a case may take.
    memory : int, optional
        Bytes that a process may hold.
    first : Worker, optional
        One that has loaded the backend already, and is ended here.
    """
    context = make_context()
    left = deque(cases)
    workers = [first] if first else []
    fault = ""
    try:
        workers += (Worker(ref, timeout, context, memory) for _ in range(min(jobs, len(cases)) - len(workers)))
        while _hand_out(left, workers):
            wait([sign for w in workers for sign in w.signs], timeout=min(w.time_left for w in workers))
            for worker in list(workers):
                try:
                    result = worker.answer()
                except BackendLoadError as error:
                    fault = str(error)
                    workers.remove(worker)
                    continue
                if result is not None:
                    yield result
                if not worker.alive:
                    workers.remove(worker)
                    if left:
                        workers.append(Worker(ref, timeout, context, memory))
        for case in left:
            yield CaseResult(ref.name, case.name, case.kind, Label.CRASH, f"not run: no process is left. {fault}")
    finally:
        left_over = [worker for worker in workers if worker.alive]
        if left_over:  # none while Python ends, when signals can no longer be handled
            with uninterrupted():
                for worker in left_over:
                    worker.end()


def _hand_out(cases: deque[Case], workers: list[Worker]) -> bool:
    """Give every idle worker its next case, and end those for which there is none; say whether any is at work."""
    for worker in list(workers):
        if worker.idle and cases:
            worker.give(cases.popleft())
        elif worker.idle:
            worker.end()
            workers.remove(worker)
    return bool(workers)


def describe_cases() -> dict[str, CaseFacts]:
    """Return what is known of every official case, by its name without device, in ONNX's order.

    The cases are generated in the process that workers are forked from, which takes some seconds the first time.

    Raises
    ------
    RunError
        That process died; what it had to say is on stderr.
    """
    context = make_context()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=describe, args=(theirs,), daemon=True)
    process.start()
    theirs.close()
    try:
        facts: dict[str, CaseFacts] = ours.recv()
    except EOFError as error:
        process.join()
        raise RunError(
            f"ONNX's cases could not be collected: the process that does it died ({how_it_ended(process.exitcode)})."
        ) from error
    process.join()
    return facts
