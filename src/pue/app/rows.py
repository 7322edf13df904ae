"""A source of rows → features, labels and, where a column holds them, propensities. Two passes, bounded memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.app.roles import Roles
from pue.app.sources.opening import BATCH, Source
from pue.app.survey import Survey, survey_rows
from pue.core.data import Features, PUData, Scenario, select
from pue.errors import InvalidInput, PueWarning
from pue.estimators.vectorizer.vectorize import Vectorizer

IMAGE_BATCH = 1024
DRIFT_ROWS = 10_000
"""Of a file, the first ones."""


@dataclass(frozen=True, eq=False)
class Rows:
    """All rows of a source, ready to learn from."""

    data: PUData
    vectorizer: Vectorizer | None
    """None for images."""
    propensity: NDArray[np.float64] | None
    """Known e of the labeled rows, in order."""

    @property
    def scenario(self) -> Scenario:
        return self.data.scenario

    @property
    def counts(self) -> dict[int, int]:
        """Rows by label."""
        return {value: int((self.data.labels == value).sum()) for value in (1, 0, -1)}

    def sample(self, most: int, seed: int) -> tuple[PUData, Tensor]:
        """At most so many rows, drawn at random, and which they are, in order."""
        if self.data.n_rows <= most:
            return self.data, torch.arange(self.data.n_rows)
        chosen = torch.from_numpy(np.sort(np.random.default_rng(seed).choice(self.data.n_rows, most, replace=False)))
        return self.data.take(chosen), chosen

    def labeled_numbers(self) -> Tensor:
        """Which rows are labeled positive."""
        return torch.nonzero(self.data.labeled)[:, 0]

    def labeled_features(self, index: Tensor) -> Features:
        """Of some of them, counted among themselves."""
        return select(self.data.x, self.labeled_numbers()[index])


def read_rows(source: Source, roles: Roles, *, scenario: str = "single_sample", seed: int = 0) -> Rows:
    """Labels and a sample of the rows first, which fits the preprocessing; then the features of all rows."""
    return surveyed_rows(source, roles, survey_rows(source, roles, seed=seed), scenario=scenario)


def surveyed_rows(source: Source, roles: Roles, survey: Survey, *, scenario: str = "single_sample") -> Rows:
    """The second pass: the features of all rows."""
    labels, known = survey.labels, survey.known
    data = PUData(torch.from_numpy(_all_features(source, survey)), torch.from_numpy(labels), Scenario.parse(scenario))
    if known is not None:
        known = known[labels == 1]
        roles.require_propensities(known)
    return Rows(data, survey.vectorizer, known)


def _all_features(source: Source, survey: Survey) -> NDArray[Any]:
    vectorizer = survey.vectorizer
    if vectorizer is None:
        return source.images(0, survey.n_rows)  # type: ignore[attr-defined, no-any-return]
    x = np.empty((survey.n_rows, len(vectorizer.feature_names)), dtype=np.float32)
    start = 0
    for frame in source.batches(BATCH, columns=list(vectorizer.columns)):
        stop = start + len(frame)
        if stop <= survey.n_rows:
            x[start:stop] = vectorizer.transform(frame.set_axis(range(start, stop)))
        start = stop
    survey.require_same(source, start)
    return x


def feature_batches(
    source: Source, vectorizer: Vectorizer | None, others: Sequence[str] = (), size: int = BATCH
) -> Iterator[tuple[NDArray[Any], pd.DataFrame]]:
    """Features of the rows and their other columns, batch by batch, in order."""
    if vectorizer is None:
        yield from _image_batches(source, others)
        return
    missing = [name for name in vectorizer.columns if name not in source.columns]
    wanted = [*vectorizer.columns, *others] if not missing else list(source.columns)  # all, so that the error can guess
    start = 0
    for frame in source.batches(size, columns=list(dict.fromkeys(wanted))):
        stop = start + len(frame)
        yield vectorizer.transform(frame.set_axis(range(start, stop))), frame[list(others)]
        start = stop


def _image_batches(source: Source, others: Sequence[str]) -> Iterator[tuple[NDArray[Any], pd.DataFrame]]:
    if source.kind != "images":
        raise InvalidInput(f"this model was trained on images, but {source.path.name} is a table.")
    start = 0
    for frame in source.batches(IMAGE_BATCH, columns=list(others)):
        yield source.images(start, start + len(frame)), frame  # type: ignore[attr-defined]
        start += len(frame)


def warn_drifted(source: Source, model: Any) -> list[str]:
    """Columns whose values differ from those at training are named, each once."""
    if not model.profiles or any(name not in source.columns for name in model.vectorizer.columns):
        return []
    found = model.drift(source.read(list(model.vectorizer.columns), rows=DRIFT_ROWS))
    for drift in found:
        warnings.warn(str(drift), PueWarning, stacklevel=2)
    return [drift.column for drift in found]


def warn_unknown(source: Source, vectorizer: Vectorizer | None, special: Sequence[str]) -> list[str]:
    """Columns the model never saw are named, once, and not used."""
    if vectorizer is None:
        return []
    known = {*vectorizer.columns, *vectorizer.dropped, *special}
    unknown = [name for name in source.columns if name not in known]
    if unknown:
        shown = ", ".join(unknown[:5]) + (f" and {len(unknown) - 5} more" if len(unknown) > 5 else "")
        warnings.warn(f"columns the model never saw are not used: {shown}.", PueWarning, stacklevel=2)
    return unknown
