"""Run records → tables and pictures, ours beside the paper's: for the terminal, Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

from pue.report import plots, render
from pue.report.groups import Group, by_suite, group
from pue.report.lines import Gain, Line, lines
from pue.report.paper import PAPER, PaperRow
from pue.report.records import Record, read_record, read_records
from pue.report.results import pictures, results, save_pictures
from pue.report.shortfalls import shortfalls
from pue.report.spread import Spread
from pue.report.tables import Column, Table, suite_tables, wide_table

__all__ = [
    "PAPER",
    "Column",
    "Gain",
    "Group",
    "Line",
    "PaperRow",
    "Record",
    "Spread",
    "Table",
    "by_suite",
    "group",
    "lines",
    "pictures",
    "plots",
    "read_record",
    "read_records",
    "render",
    "results",
    "save_pictures",
    "shortfalls",
    "suite_tables",
    "wide_table",
]
