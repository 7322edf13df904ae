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

from pue.report.spread import Spread
from pue.report.tables import Cell, Column, Table

MARKDOWN = {character: f"\\{character}" for character in "\\|*_`<>[]#"}
LATEX = {
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


def terminal(table: Table) -> RichTable:
    """A table for `rich.console.Console.print`."""
    caption = "\n".join(table.notes) or None
    rich = RichTable(title=table.title, title_justify="left", caption=caption, caption_justify="left")
    for column in table.columns:
        rich.add_column(Text(column.title), justify="left" if column.is_text else "right", overflow="fold")
    for row, texts in zip(table.rows, table.texts(), strict=True):
        rich.add_row(*(Text(text, style=_style(cell)) for cell, text in zip(row, texts, strict=True)))
    return rich


def markdown(table: Table) -> str:
    """A heading, a pipe table and its notes."""
    lines = [f"**{markdown_text(table.title)}**", ""] if table.title else []
    lines.append(_pipes([markdown_text(column.title) for column in table.columns]))
    lines.append("|" + "|".join(":--" if column.is_text else "--:" for column in table.columns) + "|")
    lines += [_pipes([markdown_text(text) for text in row]) for row in table.texts()]
    lines += ["", *(f"- {markdown_text(note)}" for note in table.notes)] if table.notes else []
    return "\n".join(lines) + "\n"


def latex(table: Table, prefix: str = "") -> str:
    """A booktabs table, its caption after `prefix`; the document needs \\usepackage{booktabs}."""
    caption = f"{prefix}: {table.title}" if prefix else table.title
    align = "".join("l" if column.is_text else "r" for column in table.columns)
    body = [[column.title for column in table.columns], *table.texts()]
    head, *rows = (" & ".join(_escape(text, LATEX) for text in row) + r" \\" for row in body)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_escape(caption, LATEX)}}}"]
    lines += [rf"\begin{{tabular}}{{{align}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule", r"\end{tabular}"]
    lines += [rf"\par\footnotesize {_escape(note, LATEX)}" for note in table.notes]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def comma_separated(table: Table) -> str:
    """Numbers in full; a spread takes three columns: the mean, `_sd` and `_n`."""
    spread = {
        column.key
        for number, column in enumerate(table.columns)
        if any(isinstance(r[number], Spread) for r in table.rows)
    }
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(name for column in table.columns for name in _names(column, column.key in spread))
    for row in table.rows:
        cells = zip(table.columns, row, strict=True)
        writer.writerow(value for column, cell in cells for value in _values(cell, column.key in spread))
    return out.getvalue()


def as_json(table: Table) -> str:
    """A list of objects; a spread is {"mean", "sd", "n"}."""
    return json.dumps([_plain(table.columns, row) for row in table.rows], indent=1, ensure_ascii=False) + "\n"


def markdown_text(text: str) -> str:
    """
    >>> markdown_text("a|b_c")
    'a\\\\|b\\\\_c'
    """
    return _escape(text, MARKDOWN)


def _escape(text: str, rules: dict[str, str]) -> str:
    return "".join(rules.get(character, character) for character in text)


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _style(cell: Cell) -> str:
    return {True: "green", False: "red"}[cell] if isinstance(cell, bool) else ""


def _names(column: Column, is_spread: bool) -> list[str]:
    return [column.key, f"{column.key}_sd", f"{column.key}_n"] if is_spread else [column.key]


def _values(cell: Cell, is_spread: bool) -> list[Any]:
    if isinstance(cell, Spread):
        return [cell.mean, cell.sd, cell.n]
    return [cell, None, None] if is_spread else [cell]


def _plain(columns: Sequence[Column], row: Sequence[Cell]) -> dict[str, Any]:
    return {
        column.key: asdict(cell) if isinstance(cell, Spread) else cell
        for column, cell in zip(columns, row, strict=True)
    }
