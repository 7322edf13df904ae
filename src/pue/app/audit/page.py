"""A page to answer a sheet on: one file, keys, answers kept in the browser, saved as the sheet."""

from __future__ import annotations

import base64
import json
import mimetypes
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pue.app.audit.cells import verdict
from pue.app.audit.record import Record, read_record
from pue.app.audit.sheet import ANSWER, PROBABILITY, read_sheet, read_table
from pue.app.page import policy
from pue.errors import InvalidInput, MissingData
from pue.files import write_text
from pue.files.paths import real

FILE = "file"
"""The column that names images."""
SPELLINGS = {1.0: "yes", 0.0: "no"}


def write_answer_page(sheet: Path, output: Path, images: Path | None = None) -> int:
    """Write the page of a sheet; how many rows it has. `images` is the folder of the files that the sheet names."""
    record = read_record(sheet)
    read_sheet(sheet, record)  # what could not be read later is refused now
    header, rows = read_table(sheet)
    write_text(output, _html(sheet.name, record, header, rows, images))
    return len(rows)


def _html(name: str, record: Record, header: list[str], rows: list[list[str]], images: Path | None) -> str:
    style, script = _part("answer.css"), _part("answer.js")
    answer = header.index(ANSWER)
    cells = [[*row, *[""] * (len(header) - len(row))] for row in rows]
    for row in cells:
        row[answer] = _spelt(row[answer])
    data = {
        "header": header,
        "rows": cells,
        "answer": answer,
        "hidden": [k for k, title in enumerate(header) if title == PROBABILITY],
        "images": [None] * len(cells) if images is None else _images(images, header, cells),
        "name": name,
        "key": f"pue-audit-{record.digest[:16]}",
    }
    environment = Environment(loader=PackageLoader(__package__, ""), autoescape=True, undefined=StrictUndefined)
    return environment.get_template("answer.html.jinja").render(
        title=f"Is this row positive? {name}",
        name=name,
        style=style,
        script=script,
        rows=_embedded(data),
        policy=policy(style, script),
    )


def _spelt(text: str) -> str:
    """An answer as the page writes it; what says "unknown" stays said."""
    said = verdict(text)[1]
    return SPELLINGS[said] if said is not None else "?" if text.strip() else ""


def _embedded(data: Any) -> Markup:
    """JSON that ends no element, whatever stands in a cell."""
    return Markup(json.dumps(data, ensure_ascii=True).replace("<", "\\u003c").replace("&", "\\u0026"))


def _images(folder: Path, header: list[str], rows: list[list[str]]) -> list[str]:
    """The files as data, for nothing is fetched."""
    if FILE not in header:
        raise InvalidInput(f"the sheet has no column {FILE!r} that names images. Leave out --images.")
    at, found = header.index(FILE), []
    root = real(folder)
    for row in rows:
        path = real(folder / row[at].removeprefix("'"))
        if not path.is_relative_to(root) or not path.is_file():
            raise MissingData(
                f"there is no image {row[at]!r} in {folder}. Pass the folder that the audit was planned on."
            )
        kind = mimetypes.guess_type(path.name)[0] or "image/png"
        found.append(f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}")
    return found


def _part(name: str) -> Markup:
    return Markup(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
