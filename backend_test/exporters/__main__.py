# SPDX-License-Identifier: Apache-2.0
"""Write all models anew into the folder given."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from backend_test.exporters import pytorch, scikit_learn

root = Path(sys.argv[1])
shutil.rmtree(root, ignore_errors=True)  # what is no longer exported is no longer tested
for source in (scikit_learn, pytorch):
    for exported in source.export():
        exported.write(root)
        opsets = ", ".join(f"{o.domain or 'ai.onnx'} {o.version}" for o in exported.model.opset_import)
        print(f"{root / exported.name}: {len(exported.model.graph.node)} nodes, opset {opsets}")
