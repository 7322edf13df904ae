"""Rows from elsewhere become files here, for a table is read more than once; they are gone when the process ends."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path


def own_folder() -> Path:
    """A new folder for copies, where temporary files go (TMPDIR)."""
    folder = Path(tempfile.mkdtemp(prefix="pue-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
