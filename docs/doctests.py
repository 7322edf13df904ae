"""Examples in docstrings as code: the numpy style knows them under a title only, and ours have none."""

from __future__ import annotations

import re
from typing import Any

import griffe

TITLE = "Examples\n--------\n"


class Doctests(griffe.Extension):
    """The first `>>>` of a docstring begins its examples."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None and TITLE not in obj.docstring.value:
            obj.docstring.value = re.sub(r"^>>> ", TITLE + ">>> ", obj.docstring.value, count=1, flags=re.MULTILINE)
