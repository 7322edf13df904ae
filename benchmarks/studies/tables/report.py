"""The page of the study from its records: tables, pictures, and what was asked of it. The words are in page.md.

python benchmarks/studies/tables/report.py dev.jsonl                               # on the screen
python benchmarks/studies/tables/report.py docs/results/tables.jsonl --targets     # only what was asked
python benchmarks/studies/tables/report.py docs/results/tables.jsonl --write       # docs/lab/tables.md and pictures
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import sections
from pictures import draw
from records import read
from tables import REPORT, TABLES
from tallies import Records, failed, good
from targets import Target, targets

TEMPLATE = Path(__file__).parent / "page.md"
DOCS = Path(__file__).parents[3] / "docs"
PAGE, IMAGES = DOCS / "lab" / "tables.md", DOCS / "images" / "tables"
UNSEEN = "No setting was chosen by these tables; one idea came from them, and what it gains here flatters (below)."
SEEN = "**Development tables are among these, so this is no report.**"


def page(everything: Records, pictures: str = "../images/tables") -> str:
    """The template with every {{name}} filled in."""
    filled = {"pictures": pictures, **_counts(good(everything)), **_tables(everything)}
    return re.sub(r"\{\{(\w+)\}\}", lambda match: filled[match[1]], TEMPLATE.read_text())


def _counts(records: Records) -> dict[str, str]:
    names = {key.table for key in records}
    real = [name for name in names if TABLES[name].is_real]
    return {
        "real": str(len(real)),
        "packages": str(len({TABLES[name].source for name in real})),
        "made": str(len(names) - len(real)),
        "seeds": ", ".join(str(seed) for seed in sorted({key.seed for key in records})),
        "unseen": UNSEEN if names <= set(REPORT) else SEEN,
    }


def _tables(everything: Records) -> dict[str, str]:
    records, five = good(everything), " | ".join(sections.FIVE)
    by_labeling = f"method | {five} | biased | n"
    return {
        "targets": target_table(records),
        "accuracy": _table(by_labeling, sections.by_method(records, "accuracy")),
        "auc": _table(by_labeling, sections.by_method(records, "auc")),
        "gains": _table("learner | logistic | kinds | both | easy | hard | scar, points | hard, points",
                        sections.gains(records)),
        "duels": _table(f"the other | {five} | biased | ahead", sections.duels(records)),
        "priors": _table("by | labeling | absolute error | error | width | truth inside | nominal",
                         sections.priors(records)),
        "metrics": _table("command | | metric | error | absolute error | width | truth inside",
                          sections.metrics(records)),
        "scar": _table(f"rejected by | {five} | first driver right", sections.tests_of_scar(records)),
        "rare": _table("method | share | AUC | minus ranking | average precision | minus ranking | constant",
                       sections.rare(records)),
        "times": _table("method | mean | median | most | n", sections.seconds(records)),
        "tables": _table("table | from | rows × columns | positives | a row; positives",
                         sections.rows_and_columns(records)),
        "failures": failure_table(everything),
    }  # fmt: skip


def target_table(records: Records) -> str:
    def row(target: Target) -> str:
        found = target.found.replace("-", "−")
        return f"| {target.claim} | {target.wanted} | {found} | {'yes' if target.met else '**no**'} |"

    return _table("claim | wanted | found | met", map(row, targets(records)))


def failure_table(everything: Records) -> str:
    """Errors, with how often."""
    counts = Counter((key.method, text.replace("|", "/")) for key, text in failed(everything).items())
    rows = (f"| {method} | {text} | {n} |" for (method, text), n in counts.most_common())
    return _table("method | error | fits", rows) if counts else "Nothing."


def _table(head: str, rows: Iterable[str]) -> str:
    body = list(rows)
    return "\n".join([f"| {head} |", "|" + "---|" * (head.count("|") + 1), *body]) if body else "No records."


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--write", action="store_true", help="docs/lab/tables.md and its pictures")
    parser.add_argument("--pictures", type=Path, help="draw the pictures into this folder")
    parser.add_argument("--targets", action="store_true", help="only what was asked of the study")
    args = parser.parse_args(arguments)
    for path in args.records:
        if not path.exists():
            parser.error(f"there is no file {path}: run benchmarks/studies/tables/run.py --out {path} first.")
    records = {key: record for path in args.records for key, record in read(path).items()}
    if args.pictures or args.write:
        draw(good(records), args.pictures or IMAGES)
    if args.write:
        PAGE.write_text(page(records))
    else:
        print(target_table(good(records)) if args.targets else page(records))


if __name__ == "__main__":
    main()
