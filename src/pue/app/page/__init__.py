"""One self-contained page about one run: everything inline, nothing fetched, every name escaped."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from pue.app.page.formats import count, interval, number, share
from pue.app.page.headline import headline
from pue.app.page.ranges import swatch
from pue.app.page.sections import SECTIONS
from pue.app.page.svg import breakable
from pue.files import write_text

__all__ = ["render_page", "write_page"]


def render_page(summary: Mapping[str, Any]) -> str:
    """A summary as HTML; sections without data are left out, so a diagnosis alone is a page too."""
    style, script = _part("page.css"), _part("page.js")
    return _template().render(
        head=headline(summary),
        **{name: make(summary) for name, make in SECTIONS.items()},
        style=style,
        script=script,
        policy=policy(style, script),
    )


def write_page(summary: Mapping[str, Any], path: str | Path) -> Path:
    """Write the page; whoever reads the path finds the old page or the new one, never half of one."""
    write_text(path, render_page(summary))
    return Path(path)


@cache
def _template() -> Template:
    loader, strict = PackageLoader(__name__, ""), StrictUndefined
    environment = Environment(loader=loader, autoescape=True, undefined=strict, trim_blocks=True, lstrip_blocks=True)
    words = {"breakable": breakable, "count": count, "interval": interval, "number": number, "share": share}
    environment.globals.update(words, swatch=swatch)
    return environment.get_template("page.html.jinja")


def _part(name: str) -> Markup:
    return Markup(resources.files(__name__).joinpath(name).read_text(encoding="utf-8"))


def policy(style: str, script: str) -> str:
    """What a page may do: run these two inline texts and show images that are inside it."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def _hash(text: str) -> str:
    """The source expression by which a policy allows exactly this inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
