"""`pip install pue` without extras: README's Python runs, and the command says what it needs.  Run by `make bare`.

It runs in an environment that holds the library alone, so it is a script and not a test of pytest.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
MOST_PACKAGES = 8
"""Beside torch and what torch itself brings."""


def main() -> None:
    print(f"pue alone brings {len(packages())} packages beside torch's own: {', '.join(packages())}")
    assert len(packages()) <= MOST_PACKAGES
    nothing_else_can_be_imported()
    readme_runs()
    every_name_is_there()
    for arguments in (["fit", "rows.csv", "--label", "s"], ["--help"]):
        the_command_says_what_it_needs(arguments)


def packages() -> list[str]:
    """What was installed for `pue` and torch does not bring."""
    return sorted(_brought_by("pue") - _brought_by("torch") - {"pue"})


def _brought_by(name: str) -> set[str]:
    """A distribution and, as far as they are installed, those it requires, theirs too."""
    found, waiting = set(), {name}
    while waiting:
        found |= waiting
        wanted = {
            wish for owner in waiting for wish in importlib.metadata.requires(owner) or [] if "extra ==" not in wish
        }
        waiting = {re.split(r"[^\w.-]", wish)[0].lower() for wish in wanted} & INSTALLED - found
    return found


INSTALLED = {found.name.lower() for found in importlib.metadata.distributions()}


def nothing_else_can_be_imported() -> None:
    import pue
    from pue.errors import EXTRAS

    assert pue.__file__.startswith(sys.prefix), f"{pue.__file__} is not the installed pue"
    optional = {module for modules in EXTRAS.values() for module in modules} - _brought_by("torch")
    assert {"pandas", "pyarrow", "skrub", "typer", "rich", "matplotlib", "optuna"} < optional
    assert [module for module in sorted(optional) if importlib.util.find_spec(module)] == []


def readme_runs() -> None:
    """All of README's Python, in one namespace; test_readme.py compares what it prints."""
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)
    assert "PUClassifier" in blocks[-1]
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)


def every_name_is_there() -> None:
    import pue

    assert [name for name in pue.__all__ if not hasattr(pue, name)] == []


def the_command_says_what_it_needs(arguments: list[str]) -> None:
    found = subprocess.run([Path(sys.executable).parent / "pue", *arguments], capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (2, "")
    assert re.fullmatch(r'pue: [\w, ]+ are not installed. Install them with: pip install "pue\[app\]"\n', found.stderr)


if __name__ == "__main__":
    main()
