# SPDX-License-Identifier: Apache-2.0
"""``verify_weights=True``: before each run, the model's files are held to what they were when it was prepared.

An engine maps large files of weights into memory. One that is written into changes what the model computes, one that is cut
ends the process with SIGBUS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from onnx_multi_backend.cache.fingerprint import hash_file
from onnx_multi_backend.engines.session import Feeds, Session
from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.models.origin import Origin
from onnx_multi_backend.models.stamp import Stamp
from onnx_multi_backend.running.feeds import Adopt, FeedMaker
from onnx_multi_backend.sessions.signature import Signature


class _File:
    def __init__(self, path: Path, stamp: Stamp) -> None:
        self.path = path
        self._stamp = stamp
        self._digest = hash_file(path)

    def is_unchanged(self) -> bool:
        try:
            now = Stamp.of(self.path)
            if now == self._stamp:
                return True
            if now._replace(ctime_ns=0) != self._stamp._replace(ctime_ns=0) or hash_file(self.path) != self._digest:
                return False
        except OSError:
            return False
        self._stamp = now  # a link to the file was made, or its rights were changed
        return True


class Unchanged:
    """Raises InvalidModelError when a model's files are not what they were. A model in memory has none.

    Parameters
    ----------
    origin : Origin
        See `SessionMaker.origin`.
    """

    def __init__(self, origin: Origin) -> None:
        self._label = origin.label
        origin.check_unchanged()
        stamped = [(origin.path, origin.stamp), *origin.beside]
        self._files = [_File(path, stamp) for path, stamp in stamped if path is not None and stamp is not None]
        origin.check_unchanged()  # not while they were read either

    def __call__(self) -> None:
        for file in self._files:
            if not file.is_unchanged():
                raise InvalidModelError(
                    f"{self._label}: '{file.path}' was changed, replaced or removed after the model was prepared, and engines "
                    "read weights from it while they run. Prepare the model again."
                )


class VerifyingFeedMaker(FeedMaker):
    """Checks the files before it looks at the inputs."""

    def __init__(self, signature: Signature, from_device: Adopt | None, check: Callable[[], None]) -> None:
        super().__init__(signature, from_device)
        self._check = check

    def __call__(self, inputs: Any) -> dict[str, Any]:
        self._check()
        return super().__call__(inputs)


class VerifyingBinder:
    """A session whose bound runs check the files too."""

    def __init__(self, session: Session, check: Callable[[], None]) -> None:
        self._session, self._check = session, check

    def bind(self, inputs: Feeds, outputs: Sequence[Any]) -> Callable[[], None]:
        """Make a run on fixed buffers; see `Session.bind`."""
        run, check = self._session.bind(inputs, outputs), self._check

        def bound() -> None:
            check()
            run()

        return bound
