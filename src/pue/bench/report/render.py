"""One table, five writings: terminal, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table as RichTable
from rich.text import Text

from pue.bench.record import MeanSd
from pue.bench.report.tables import Cell, Column, ReportTable

MARKDOWN = str.maketrans({character: f"\\{character}" for character in "\\|*_`<>[]#"})
_LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "·": r"$\cdot$",
    "α": r"$\alpha$",
    "π": r"$\pi$",
}
LATEX = str.maketrans(_LATEX)


def terminal(table: ReportTable) -> RichTable:
    """A table for `rich.console.Console.print`."""
    caption = "\n".join(table.notes) or None
    rich = RichTable(title=table.title, title_justify="left", caption=caption, caption_justify="left")
    for column in table.columns:
        rich.add_column(Text(column.title), justify="left" if column.is_text else "right", overflow="fold")
    for row, texts in zip(table.rows, table.texts(), strict=True):
        rich.add_row(*(Text(text, style=_style(cell)) for cell, text in zip(row, texts, strict=True)))
    return rich


def markdown(table: ReportTable) -> str:
    """A heading, a pipe table and its notes."""
    lines = [f"**{markdown_text(table.title)}**", ""] if table.title else []
    lines.append(_pipes([markdown_text(column.title) for column in table.columns]))
    lines.append("|" + "|".join(":--" if column.is_text else "--:" for column in table.columns) + "|")
    lines += [_pipes([markdown_text(text) for text in row]) for row in table.texts()]
    lines += ["", *(f"- {markdown_text(note)}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def latex(table: ReportTable, prefix: str = "") -> str:
    """A booktabs table, its caption after `prefix`; the document needs \\usepackage{booktabs}."""
    caption = f"{prefix}: {table.title}" if prefix else table.title
    align = "".join("l" if column.is_text else "r" for column in table.columns)
    body = [[column.title for column in table.columns], *table.texts()]
    head, *rows = (" & ".join(text.translate(LATEX) for text in row) + r" \\" for row in body)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption.translate(LATEX)}}}"]
    lines += [rf"\begin{{tabular}}{{{align}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {note.translate(LATEX)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def comma_separated(table: ReportTable) -> str:
    """Numbers in full; a mean takes three columns: itself, `_sd` and `_n`."""
    cells = zip(table.columns, zip(*table.rows, strict=True), strict=False)  # there may be no row
    means = {column.key for column, values in cells if any(isinstance(value, MeanSd) for value in values)}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(name for column in table.columns for name in _names(column, column.key in means))
    for row in table.rows:
        pairs = zip(table.columns, row, strict=True)
        writer.writerow(value for column, cell in pairs for value in _values(cell, column.key in means))
    return out.getvalue()


def as_json(table: ReportTable) -> str:
    """A list of objects; a mean is {"mean", "sd", "n"}."""
    return json.dumps([_plain(table.columns, row) for row in table.rows], indent=1, ensure_ascii=False) + "\n"


def markdown_text(text: str) -> str:
    """
    >>> markdown_text("a|b_c")
    'a\\\\|b\\\\_c'
    """
    return text.translate(MARKDOWN)


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _style(cell: Cell) -> str:
    return {True: "green", False: "red"}[cell] if isinstance(cell, bool) else ""


def _names(column: Column, is_mean: bool) -> list[str]:
    return [column.key, f"{column.key}_sd", f"{column.key}_n"] if is_mean else [column.key]


def _values(cell: Cell, is_mean: bool) -> list[Any]:
    if isinstance(cell, MeanSd):
        return [cell.mean, cell.sd, cell.n]
    return [cell, None, None] if is_mean else [cell]


def _plain(columns: Sequence[Column], row: Sequence[Cell]) -> dict[str, Any]:
    values = (asdict(cell) if isinstance(cell, MeanSd) else cell for cell in row)
    return {column.key: value for column, value in zip(columns, values, strict=True)}
