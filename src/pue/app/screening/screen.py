"""`screen_columns`: what of a table to learn from, what to leave out, and what to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from pue.app.screening.findings import Finding, left_out
from pue.app.screening.identifiers import find_identifiers
from pue.app.screening.leaks import find_leaks
from pue.app.sources.labels import parse_labels
from pue.core.folds import row_hash
from pue.errors import InvalidInput
from pue.estimators.vectorizer.vectorize import Vectorizer, fit_vectorizer

COPIED, MORE = 0.2, 5.0
"""Labeled rows with an exact copy among the others: so large a share, and so many times that of the others."""
FEWEST_COPIES = 10


@dataclass(frozen=True, eq=False)
class Screening:
    """A vectorizer of the columns to learn from, and what was found about the others."""

    vectorizer: Vectorizer
    findings: tuple[Finding, ...]


def screen_columns(frame: pd.DataFrame, s: Any, *, keep: Sequence[str] = (), seed: int = 0) -> tuple[Finding, ...]:
    """Columns of a frame that give the labels `s` away or name rows, and others that deserve a look.

    >>> rng = np.random.default_rng(0)
    >>> s = (rng.random(400) < 0.2).astype(int)
    >>> frame = pd.DataFrame({"claim": [f"AP-{n}" for n in range(400)], "amount": rng.normal(size=400)})
    >>> frame["opened"] = np.where(s == 1, rng.integers(1, 9, 400), np.nan)
    >>> [(found.column, found.kind) for found in screen_columns(frame, s)]
    [('claim', 'identifier'), ('opened', 'leak')]
    """
    if len(frame) != np.size(s):
        raise InvalidInput(f"the frame has {len(frame)} rows but s has {np.size(s)}. Pass one label for every row.")
    labels = parse_labels(pd.Series(np.asarray(s).ravel()), "s")
    return screen(frame, labels, np.arange(len(frame)), keep=keep, seed=seed).findings


def screen(
    frame: pd.DataFrame,
    labels: NDArray[np.int8],
    numbers: NDArray[np.int64],
    *,
    keep: Sequence[str] = (),
    seed: int = 0,
    nodata: tuple[float, ...] = (),
) -> Screening:
    """Of rows that stand at `numbers` of a table. A column in `keep` is learnt from, whatever is found."""
    named = [found for found in find_identifiers(frame, numbers) if found.column not in keep]
    rest = frame.drop(columns=list(left_out(named)))
    _require_some(rest, named)
    vectorizer = fit_vectorizer(rest.set_axis(numbers), seed=seed, nodata=nodata)  # errors name rows of the table
    leaks = [found for found in find_leaks(rest, labels, vectorizer, seed=seed) if found.column not in keep]
    findings = [*named, *leaks]
    dropped = left_out(findings)
    _require_some(rest.drop(columns=[*left_out(leaks), *vectorizer.dropped]), findings)
    encoders = tuple(encoder for encoder in vectorizer.encoders if encoder.name not in dropped)
    vectorizer = replace(vectorizer, encoders=encoders, dropped={**vectorizer.dropped, **dropped})
    findings += _copies(vectorizer.transform(rest), labels)
    notes = [*vectorizer.notes, *map(str, findings)]
    return Screening(replace(vectorizer, notes=notes), tuple(findings))


def _require_some(rest: pd.DataFrame, findings: Sequence[Finding]) -> None:
    if rest.columns.empty:
        raise InvalidInput(
            "no column is left to learn from. " + " ".join(f"{found.column!r}: {found.reason}." for found in findings)
            + " Add features, or keep one of these with --keep."
        )  # fmt: skip


def _copies(features: NDArray[np.float32], labels: NDArray[np.int8]) -> Iterator[Finding]:
    """Labeled rows that stand among the others as well, more often than these repeat one another."""
    content = row_hash(torch.from_numpy(features))
    labeled, others = content[labels == 1], content[labels == 0]
    values, counts = np.unique(others, return_counts=True)
    copied = float(np.isin(labeled, values).mean()) if len(labeled) else 0.0
    repeated = float(counts[counts > 1].sum() / max(1, len(others)))
    if copied * len(labeled) >= FEWEST_COPIES and copied >= max(COPIED, MORE * repeated):
        yield Finding(
            "", "copies",
            f"{copied:.0%} of the labeled rows have an exact copy among the others, of which only {repeated:.1%} "
            "repeat one another. If labeled rows were copied out of the table, remove them there, or pass --scenario "
            "case_control.",
            False,
        )  # fmt: skip
