# SPDX-License-Identifier: Apache-2.0
"""A ready test class that holds a backend to `onnx.backend.base`, for pytest and unittest alike."""

from __future__ import annotations

import functools
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnx_multi_backend.conformance.protocol_checks import NoDevice, ProtocolChecks
from onnx_multi_backend.errors import OptionError

_Check = Callable[[Any], None]


def protocol_suite(
    backend: Any,
    *,
    devices: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
    known_violations: Mapping[str, str] | None = None,
) -> type[unittest.TestCase]:
    """Make a test class that holds a backend to ONNX's backend interface.

    In a test module::

        TestProtocol = protocol_suite(MyBackend)

    Parameters
    ----------
    backend : type[Backend] or module
        Anything with ONNX's backend interface.
    devices : sequence of str, optional
        The backend's own devices, each of which it has to support here; the first is computed on. By default CPU and
        CUDA are tried, of which it has to support one.
    options : mapping, optional
        Passed to every ``prepare``, ``run_model``, ``run_node`` and ``is_compatible``.
    known_violations : mapping of str to str, optional
        Checks that the backend is known to fail, by the name of the method, each with the reason. They become
        expected failures; one that passes is an unexpected success, which fails the run.

    Returns
    -------
    type[unittest.TestCase]

    Raises
    ------
    OptionError
        ``known_violations`` names no check, or gives no reason.
    """
    checks = {
        name: _held(getattr(ProtocolChecks, name))
        for name in unittest.defaultTestLoader.getTestCaseNames(ProtocolChecks)
    }
    for name, reason in (known_violations or {}).items():
        if name not in checks:
            raise OptionError(f"known_violations: there is no check {name!r}. The checks are {', '.join(checks)}.")
        if not isinstance(reason, str) or not reason.strip():
            raise OptionError(f"known_violations: {name} needs a reason, as text.")
        checks[name] = _expected_to_fail(checks[name], reason)
    title = str(getattr(backend, "__name__", type(backend).__name__)).replace(".", "_")
    settings = {"backend": backend, "devices": devices, "options": dict(options or {})}
    return type(f"Protocol_{title}", (ProtocolChecks,), {"__module__": __name__, **settings, **checks})


def _held(check: _Check) -> _Check:
    """Make a skip by the backend a failure: a backend must not get out of a check."""

    @functools.wraps(check)
    def test(self: Any) -> None:
        try:
            check(self)
        except NoDevice:
            raise
        except unittest.SkipTest as skip:
            raise AssertionError(f"the backend skipped a required check: {skip}") from skip

    return test


def _expected_to_fail(check: _Check, reason: str) -> _Check:
    @unittest.expectedFailure
    @functools.wraps(check)
    def test(self: Any) -> None:
        check(self)

    test.__doc__ = f"{str(check.__doc__).splitlines()[0]} Known violation: {reason}"
    return test
