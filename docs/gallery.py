"""Write docs/gallery.md: each example with what it prints.

    python docs/gallery.py

The examples are whole programs that a user copies; tests/e2e/test_examples.py fails where the page and they part.
"""

from __future__ import annotations

import ast
import contextlib
import io
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "gallery.md"
ORDER = (
    "table",
    "images",
    "known_propensities",
    "labeled_negatives",
    "grid_search",
    "own_network",
    "how_good",
    "is_it_biased",
)
HEAD = """# Gallery

Programs to copy. Each is a file in [examples](../examples), needs no data, runs in seconds, and prints what is shown
beside it. `s` is 1 for a labeled positive, 0 for an unlabeled row, and -1 for a labeled negative.
"""
SECTION = """
## {title}

{words}

```python
{code}
```

```output
{output}```

[`{name}.py`](../examples/{name}.py)
"""


def source(name: str) -> str:
    return (ROOT / "examples" / f"{name}.py").read_text()


def printed(name: str) -> str:
    """What the program prints."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")
    return out.getvalue()


def section(name: str, output: str) -> str:
    """Title and words of the docstring, the code after it, the output."""
    text = source(name)
    title, _, words = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")
    code = text.split('"""', 2)[2].strip()
    heading, colon, more = title.rstrip(".").partition(": ")
    lead = f"{more[0].upper()}{more[1:]}. {words}" if colon else words
    return SECTION.format(title=heading, words=lead, code=code, output=output, name=name)


def main() -> None:
    PAGE.write_text(HEAD + "".join(section(name, printed(name)) for name in ORDER))


if __name__ == "__main__":
    main()
