# SPDX-License-Identifier: Apache-2.0
"""What stands in the place of the sessions of a model that was closed."""

from __future__ import annotations

from typing import Any, NoReturn

from onnx_multi_backend.engines.session import Session
from onnx_multi_backend.errors import RunError
from onnx_multi_backend.sessions.maker import Maker


def closed_error(preset: str, label: str) -> RunError:
    """The error for whoever uses a model that was closed."""
    return RunError(f"{preset}: {label} was closed. Prepare it again.")


class Closed(Session):
    """A session that was let go of: every use of it is a RunError. So is making another one, which is calling it.

    Parameters
    ----------
    preset : str
        For the message.
    made_by : Maker
        What is known of the model without it.
    """

    def __init__(self, preset: str, made_by: Maker) -> None:
        self._preset = preset
        self.signature, self.origin = made_by.signature, made_by.origin

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse."""
        raise closed_error(self._preset, self.signature.label)

    run = run_to_device = bind = placement = for_nothing = for_shapes = deciding = __call__
    get_providers = get_provider_options = end_profiling = __call__
