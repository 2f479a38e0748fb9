# SPDX-License-Identifier: Apache-2.0
"""Write all models anew into the folder given; only some modules' where these are named too."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path

MODULES = ("tables", "vision", "sequences", "language", "families", "tools")  # the tools work on what the others wrote

root = Path(sys.argv[1])
wanted = sys.argv[2:] or MODULES
if wanted == MODULES:
    shutil.rmtree(root, ignore_errors=True)  # what is no longer made is no longer tried
root.mkdir(parents=True, exist_ok=True)
for name in wanted:
    importlib.import_module(f"backend_test.real_models.make.{name}").make(root)
