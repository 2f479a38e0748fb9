# SPDX-License-Identifier: Apache-2.0
"""The fingerprint of a model that is loaded already."""

from __future__ import annotations

from onnx_multi_backend.cache.fingerprint import Fingerprint, fingerprint_bytes, fingerprint_files, hash_model
from onnx_multi_backend.cache.store import Store
from onnx_multi_backend.errors import InvalidModelError
from onnx_multi_backend.models.loading import LoadedModel


def fingerprint_model(loaded: LoadedModel, store: Store) -> Fingerprint:
    """The identity of a loaded model's content; what is read for it is remembered in the store.

    Raises
    ------
    InvalidModelError
        A file was removed meanwhile.
    """
    if loaded.path is None:
        assert loaded.data is not None
        return fingerprint_bytes(loaded.data)
    try:
        model = hash_model(loaded.path, store.root, on_error=store.unusable)
        made = fingerprint_files(model, store.root, loaded.external_files, on_error=store.unusable)
    except OSError as error:
        raise InvalidModelError(
            f"{loaded.label} cannot be read any more: {error.strerror}. Prepare it again."
        ) from error
    loaded.origin.check_unchanged()
    return made
