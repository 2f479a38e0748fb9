# SPDX-License-Identifier: Apache-2.0
"""Write all models anew into the folder given, each framework's in a process of its own."""

from __future__ import annotations

import functools
import multiprocessing
import shutil
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from backend_test.exporters.writing import SOURCES, write


def main(root: Path) -> None:
    shutil.rmtree(root, ignore_errors=True)  # what is no longer exported is no longer tested
    with ProcessPoolExecutor(len(SOURCES), multiprocessing.get_context("spawn")) as pool:
        list(pool.map(functools.partial(write, root), SOURCES))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
