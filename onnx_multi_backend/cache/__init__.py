# SPDX-License-Identifier: Apache-2.0
"""What engines made of models, kept for the next start. Nothing is imported here: a run without a cache needs none of it.

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
