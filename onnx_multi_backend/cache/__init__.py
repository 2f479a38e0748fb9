# SPDX-License-Identifier: Apache-2.0
"""What engines made of models, kept for the next start.

::

    folder.py       where, and how much
    fingerprint.py  which model: a fast hash of its content, remembered by the file's stamp
    of_model.py     the same for a loaded model
    key.py          the name of an entry: everything that changes the result
    host.py         the CPU and the packages, for the key
    store.py        entries in a folder: found and verified
    draft.py        an entry on its way in: whole or not at all
    entry.py        one entry: files and facts under a manifest
    upkeep.py       what lies there, and how it goes: the least recently used first, or all of it
    kinds.py        who keeps entries, and by which names they are known
    regular.py      files that are opened without waiting
    sealed.py       small JSON files that tell when they are damaged
"""

from onnx_multi_backend.cache.draft import Draft
from onnx_multi_backend.cache.entry import Entry, read_about
from onnx_multi_backend.cache.fingerprint import (
    Fingerprint,
    HashedFile,
    fingerprint_bytes,
    fingerprint_files,
    hash_model,
)
from onnx_multi_backend.cache.folder import resolve, size_limit, user_cache_dir
from onnx_multi_backend.cache.key import make_key
from onnx_multi_backend.cache.of_model import fingerprint_model
from onnx_multi_backend.cache.store import Store
from onnx_multi_backend.cache.upkeep import Kept, clear, entries

__all__ = [
    "Draft",
    "Entry",
    "Fingerprint",
    "HashedFile",
    "Kept",
    "Store",
    "clear",
    "entries",
    "fingerprint_bytes",
    "fingerprint_files",
    "fingerprint_model",
    "hash_model",
    "make_key",
    "read_about",
    "resolve",
    "size_limit",
    "user_cache_dir",
]
