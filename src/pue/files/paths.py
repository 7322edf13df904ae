"""Where a path leads."""

from __future__ import annotations

import os
from pathlib import Path


def real(path: str | os.PathLike[str]) -> Path:
    """The absolute path without symbolic links; unlike `Path.resolve` no error for links that lead to themselves.

    >>> real("/usr/../usr") == real("/usr")
    True
    """
    return Path(os.path.realpath(path))
