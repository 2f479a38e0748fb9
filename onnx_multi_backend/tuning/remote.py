# SPDX-License-Identifier: Apache-2.0
"""A lane in a process of its own: what crashes or hangs there costs that process alone."""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
from typing import Any

from onnx_multi_backend.errors import EngineCrashedError
from onnx_multi_backend.isolation.process import Process, how_it_ended
from onnx_multi_backend.presets.setup import Setup
from onnx_multi_backend.tuning.lane import Prepared

_SERVER = "onnx_multi_backend.tuning.lane_server"

#: Seconds that a process gets to start, beyond what is asked of it.
_START = 60.0


class RemoteLane:
    """As `Lane`, in another process, which is started when it is first asked, and again after it died.

    Parameters
    ----------
    given : bytes
        The models and examples of a `Lane`, pickled; lanes may share them.

    Attributes
    ----------
    limit : float
        Seconds that an answer may take.
    starts : int
        How many processes there were, and 1: what was prepared in an earlier one is gone.
    """

    def __init__(self, given: bytes) -> None:
        self._given = given
        self._process: Process | None = None
        self.limit = _START
        self.starts = 1

    def load_engine(self, preset: str) -> None:
        """See `Lane.load_engine`."""
        self._ask("load_engine", preset)

    def prepare(self, key: str, setup: Setup, model: str) -> Prepared:
        """See `Lane.prepare`; raises EngineCrashedError too, as all that follow."""
        found: Prepared = self._ask("prepare", key, setup, model)
        return found

    def prepare_cached(self, setup: Setup, model: str) -> float | None:
        """See `Lane.prepare_cached`."""
        found: float | None = self._ask("prepare_cached", setup, model)
        return found

    def outputs(self, key: str) -> tuple[list[tuple[Any, ...]], list[float]]:
        """See `Lane.outputs`."""
        found: tuple[list[tuple[Any, ...]], list[float]] = self._ask("outputs", key)
        return found

    def again(self, key: str) -> tuple[Any, ...]:
        """See `Lane.again`."""
        found: tuple[Any, ...] = self._ask("again", key)
        return found

    def nudged(self, key: str) -> tuple[Any, ...]:
        """See `Lane.nudged`."""
        found: tuple[Any, ...] = self._ask("nudged", key)
        return found

    def latency(self, key: str, seconds: float, warm_up: float) -> list[float]:
        """See `Lane.latency`."""
        found: list[float] = self._ask("latency", key, seconds, warm_up)
        return found

    def throughput(self, key: str, seconds: float, latency: float) -> float:
        """See `Lane.throughput`."""
        found: float = self._ask("throughput", key, seconds, latency)
        return found

    def elsewhere_time(self, key: str) -> float | None:
        """See `Lane.elsewhere_time`."""
        found: float | None = self._ask("elsewhere_time", key)
        return found

    def memory(self) -> int | None:
        """See `Lane.memory`."""
        found: int | None = self._ask("memory")
        return found

    def evaluate(self, count: int) -> list[tuple[Any, ...]]:
        """See `Lane.evaluate`."""
        found: list[tuple[Any, ...]] = self._ask("evaluate", count)
        return found

    def drop(self, key: str) -> None:
        """See `Lane.drop`."""
        self._ask("drop", key)

    def close(self) -> None:
        """End the process; the next question starts another one."""
        process, self._process = self._process, None
        if process is not None:
            self.starts += 1
            process.kill()

    def _ask(self, name: str, *args: Any) -> Any:
        process = self._alive()
        timer = threading.Timer(self.limit, process.stop)
        timer.daemon = True
        timer.start()
        try:
            answer = process.ask(pickle.dumps((name, args)))
        except EOFError:
            self._process = None
            self.starts += 1
            raise self._obituary(process, name) from None
        except BaseException:  # Ctrl-C: its answer must not be taken for the next one's
            self.close()
            raise
        finally:
            timer.cancel()
            timer.join()
        if process.overdue:  # it answered in the last moment
            self.close()
        if answer[:1] == b"e":
            error: Exception = pickle.loads(answer[1:])
            raise error
        return pickle.loads(answer[1:])

    def _alive(self) -> Process:
        if self._process is None:
            folder = None
            with contextlib.suppress(OSError):  # it was removed
                folder = os.getcwd()
            process = Process(folder, _SERVER)
            try:
                process.ask(self._given)
            except EOFError:
                raise self._obituary(process, "start") from None
            except BaseException:
                process.kill()
                raise
            self._process = process
        return self._process

    def _obituary(self, process: Process, what: str) -> EngineCrashedError:
        exit_code = process.exit_code()
        process.kill()
        if process.overdue:
            return EngineCrashedError(f"its process was ended because it took more than {self.limit:.3g} s ({what})")
        return EngineCrashedError(f"the engine {how_it_ended(exit_code)[0]} ({what})")
