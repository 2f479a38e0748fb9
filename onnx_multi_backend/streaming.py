# SPDX-License-Identifier: Apache-2.0
"""Many runs, several of them under way at once, their results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any


def in_order(run: Callable[[Any], Any], batches: Iterable[Any], in_flight: int) -> Iterator[Any]:
    """Run each batch, and yield the results in the order of the batches.

    At most `in_flight` batches are under way or wait for the caller at any time; the next is taken from the iterable
    when a result is taken out. What a run or the iterable raises is raised in its place; later batches are dropped.
    """
    source = iter(batches)
    with ThreadPoolExecutor(in_flight, thread_name_prefix="run_many") as threads:
        under_way: deque[Future[Any]] = deque()
        try:
            under_way.extend(threads.submit(run, batch) for batch in islice(source, in_flight))
            while under_way:
                done = under_way.popleft().result()
                under_way.extend(threads.submit(run, batch) for batch in islice(source, 1))
                yield done
        finally:
            for waiting in under_way:
                waiting.cancel()
