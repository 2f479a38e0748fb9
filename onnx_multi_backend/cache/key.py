# SPDX-License-Identifier: Apache-2.0
"""The name of an entry."""

from __future__ import annotations

import hashlib

from onnx_multi_backend.cache import host

#: Raised when an entry's content changes its meaning.
_FORMAT = 3


def make_key(fingerprint: str, engine: str, *parts: object) -> str:
    """A name that no other model, version, CPU or option shares.

    Parameters
    ----------
    fingerprint : str
        Of the model's content.
    engine : str
        With its version.
    *parts
        What else changes the result; each has a ``repr`` that says all of it, in an order that does not vary.
    """
    digest = hashlib.sha256()
    for part in (_FORMAT, fingerprint, engine, host.packages(), host.cpu(), *parts):
        digest.update(f"{part!r}\n".encode())
    return digest.hexdigest()[:32]
