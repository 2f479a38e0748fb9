# SPDX-License-Identifier: Apache-2.0
"""A session around another one, which answers what it is asked beside runs."""

from __future__ import annotations

from typing import Any

from onnx_multi_backend.engines.placement import NodePlacement
from onnx_multi_backend.engines.session import Session


class DelegatingSession(Session):
    """Hands everything but the runs to the session behind.

    Parameters
    ----------
    session : Session
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    @property
    def spoilable(self) -> bool:
        return self._session.spoilable

    @property
    def failures(self) -> int:
        return self._session.failures

    @property
    def serial(self) -> bool:
        return self._session.serial

    @property
    def in_flight(self) -> int:
        return self._session.in_flight

    def placement(self) -> tuple[NodePlacement, ...]:
        return self._session.placement()

    def get_providers(self) -> list[str]:
        return self._session.get_providers()

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return self._session.get_provider_options()

    def end_profiling(self) -> str:
        return self._session.end_profiling()
