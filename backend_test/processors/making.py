# SPDX-License-Identifier: Apache-2.0
"""Have the host rewrite what the emulated processors are shown: ``python -m backend_test.processors.making PRESET FILE [KEPT]``.

What the host's suites have left in the folder KEPT (`keeping`) is not made again.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from pathlib import Path

from backend_test.processors.keeping import Kept, read
from backend_test.processors.official import adapted_cases
from backend_test.processors.rewritten import recording
from onnx_multi_backend.adapt import lowering
from onnx_multi_backend.conformance.cases import load_model
from onnx_multi_backend.presets.registry import get_preset


def main(preset: str, path: Path, folder: Path | None = None) -> None:
    kept = read(folder, preset) if folder is not None else Kept(set(), {})
    lowering.lower = recording(lowering.lower, kept.taken)
    warnings.simplefilter("ignore")  # the suite tells what they are about
    left = [case for case in adapted_cases(preset) if case not in kept.cases]
    for case in left:
        get_preset(preset).prepare(load_model(case))
    print(f"{preset}: {len(left)} cases rewritten, {len(kept.cases)} ran in suites before", flush=True)
    path.write_bytes(pickle.dumps(kept.taken))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(Path, sys.argv[3:]))
