# SPDX-License-Identifier: Apache-2.0
"""How many threads ONNX Runtime gets, where the user names no number.

ONNX Runtime's own number is one for each physical core of the computer, whatever the affinity mask and the quota say, and each is
pinned to its core: under ``taskset -c 0`` a thread goes to CPU 1 (seen with 1.24.1 and 1.31.1). Threads of a number that it is told
stay within the mask.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from onnx_multi_backend.host import cpus

#: Session options, and the variables that ONNX Runtime takes their numbers from (since 1.31).
_INTRA, _INTER = "intra_op_num_threads", "inter_op_num_threads"
_VARIABLES = {_INTRA: "ORT_INTRA_OP_NUM_THREADS", _INTER: "ORT_INTER_OP_NUM_THREADS"}

#: With one of these the threads are not the session's, or are counted by the CPUs that they are pinned to.
_OTHERS = ("use_per_session_threads", "session.intra_op_thread_affinities")


def with_threads(given: Any) -> Any:
    """Session options with those that `own` adds. An ``onnxruntime.SessionOptions`` is the user's and stays as it is."""
    added = own(given)
    return {**added, **(given or {})} if added else given


def own(given: Any) -> dict[str, int]:
    """The numbers that fit the process: nothing where ONNX Runtime's do, or the user names them."""
    if not (given is None or isinstance(given, Mapping)) or any(name in (given or ()) for name in _OTHERS):
        return {}
    here = cpus.usable()
    if not here.masked and here.within_quota >= here.cores:
        return {}
    named = given or {}
    parallel = str(named.get("execution_mode", "")).endswith("ORT_PARALLEL")
    wanted = (_INTRA, _INTER) if parallel else (_INTRA,)
    return {n: here.threads for n in wanted if n not in named and not os.environ.get(_VARIABLES[n])}
