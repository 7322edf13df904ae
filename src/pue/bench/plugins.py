"""Methods of your own in a file: `pue bench --plugin mymethod.py` runs it, in every process that computes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable
from pathlib import Path

from pue.errors import InvalidInput, MissingData
from pue.files.paths import real


def load_plugins(paths: Iterable[Path]) -> None:
    """Run these Python files, each once in a process; what they put into registries is known from then on."""
    for path in paths:
        _load(real(path))


def _load(path: Path) -> None:
    name = f"pue_plugin_{path.stem}"
    if getattr(sys.modules.get(name), "__file__", None) == str(path):
        return
    if not path.is_file():
        raise MissingData(f"there is no {path}. A plugin is a Python file that adds to registries such as METHODS.")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"{path} is no Python file: its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InvalidInput(f"the plugin {path} fails: {type(error).__name__}: {error}. Run it by itself.") from error
