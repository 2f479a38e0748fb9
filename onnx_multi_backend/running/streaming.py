# SPDX-License-Identifier: Apache-2.0
"""Many runs, several of them under way at once where that pays, their results in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

#: Threads at most, however many batches may be under way.
_MOST_THREADS = 64


#: A run that takes fewer seconds is not worth a thread: handing it over costs some 0.05 ms.
WORTH_A_THREAD = 0.0002
#: So many runs in a row must take longer; the first ones of a session do anyway.
_IN_A_ROW = 3


def stream(
    run: Callable[[Any], Any], batches: Iterator[Any], many: Callable[[], tuple[Callable[[Any], Any], int]]
) -> Iterator[Any]:
    """Run each batch in this thread, and several at once from when the runs turn out to be long enough.

    Parameters
    ----------
    run : callable
    batches : iterator
    many : callable
        Makes what runs a batch in a thread, and tells how many may be under way; called once, and only where it pays.
    """
    long = 0
    for batch in batches:
        started = time.perf_counter()
        result = run(batch)
        long = long + 1 if time.perf_counter() - started > WORTH_A_THREAD else 0
        yield result
        del result
        if long == _IN_A_ROW:
            threaded, in_flight = many()
            yield from in_order(threaded, batches, in_flight)


def in_order(run: Callable[[Any], Any], batches: Iterator[Any], in_flight: int) -> Iterator[Any]:
    """Run each batch, and yield the results in the order of the batches.

    At most `in_flight` batches are under way or wait for the caller at any time; the next is taken from the iterator
    when a result is taken out. What a run or the iterator raises is raised in its place, after the results of the
    batches before it; later batches are dropped.
    """
    with ThreadPoolExecutor(min(in_flight, _MOST_THREADS), thread_name_prefix="run_many") as threads:
        under_way: deque[Future[Any]] = deque()
        end: Exception | None = None

        def read_ahead() -> None:
            nonlocal end
            while end is None and len(under_way) < in_flight:
                try:
                    under_way.append(threads.submit(run, next(batches)))
                except Exception as error:  # raised below, when its turn has come
                    end = error

        try:
            read_ahead()
            while under_way:
                done = under_way.popleft().result()
                read_ahead()
                yield done
            if end is not None and not isinstance(end, StopIteration):
                raise end
        finally:
            for waiting in under_way:
                waiting.cancel()
