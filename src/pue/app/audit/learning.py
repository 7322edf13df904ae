"""Answers in a fit: the prior they prove, rows of known class, and propensities that agree with them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pue.app.audit.reading import Answered
from pue.app.origin import checksum
from pue.app.rows import Rows
from pue.app.sources.opening import Source
from pue.app.sources.problems import require_column
from pue.app.stream import StreamedRows
from pue.core.data import PUData, Scenario, possible_prior
from pue.core.lesson import DOUBT, Combined, Lesson, combine
from pue.errors import InvalidInput, listed
from pue.estimators.vectorizer.columns import cell_text
from pue.priors import PriorEstimate
from pue.propensity.recalibration import agreement, recalibrated

if TYPE_CHECKING:
    from pue.app.preparation import Preparation

METHOD, ASSUMES = "audit", "nothing about the labels"


@dataclass(frozen=True, eq=False)
class Taught:
    """What an audit tells a fit."""

    lesson: Lesson
    prior: PriorEstimate

    def teach(self, rows: Rows | StreamedRows, prepared: Preparation) -> tuple[Rows, Preparation]:
        """Rows and propensities of the combined risk; see `pue.core.lesson`."""
        assert isinstance(rows, Rows)
        labels = rows.data.labels.numpy().astype(np.int64)
        a, b = agreement(prepared.e, prepared.propensity_model, rows.data.x, self.lesson)
        share: float | None = None
        doubt = DOUBT if rows.propensity is None else 0.0

        def combined(e: Tensor | None) -> Combined:
            agreed = None if e is None else recalibrated(e.double().numpy(), a, b)
            return combine(labels, agreed, self.lesson, share, doubt=doubt)

        found = combined(prepared.e)
        share = found.share
        judging = combined(prepared.judging).propensity
        others = [] if prepared.readings is None else [combined(e).propensity for e in prepared.readings.unbind(1)]
        readings = torch.from_numpy(np.stack(others, axis=1)) if others else None
        data = PUData(rows.data.x, torch.from_numpy(found.labels), rows.scenario, torch.from_numpy(found.mass))
        e, judging_e = torch.from_numpy(found.propensity), torch.from_numpy(judging)
        return replace(rows, data=data), replace(prepared, e=e, judging=judging_e, readings=readings, audited=True)


def taught(answered: Answered, source: Source, rows: Rows | StreamedRows) -> Taught:
    """The answers of sheets about these rows."""
    if not isinstance(rows, Rows):
        raise InvalidInput(
            "answers are learnt from rows in memory, and these would be streamed. Allow as much with --memory, or give "
            "the prior that pue audit read finds: --prior."
        )
    if rows.scenario is not Scenario.SINGLE_SAMPLE:
        raise InvalidInput(
            "--audit goes with a single sample, in which the labeled rows are a part of the population. With "
            "case-control data give the prior that pue audit read finds: --prior."
        )
    known = answered.plan.known
    if known.rows != rows.data.n_rows or known.positives != rows.counts[1]:
        raise InvalidInput(
            f"the audit was planned on {known.rows:,} rows with {known.positives:,} labels; here are "
            f"{rows.data.n_rows:,} with {rows.counts[1]:,}. Fit on the table that it was planned on."
        )
    verdict = ~np.isnan(answered.answers)
    numbers = _row_numbers(answered, source)[verdict]
    places = answered.plan.stratum[verdict]
    sizes = np.array([s.size for s in answered.plan.strata], float)
    chance = (np.bincount(places, minlength=len(sizes)) / sizes)[places]
    lesson = Lesson(numbers, answered.answers[verdict] == 1, chance)
    found = answered.findings().prior
    value = possible_prior(lesson.positives(rows.data.labels.numpy()) / known.rows, rows.data.labels, rows.scenario)
    return Taught(lesson, PriorEstimate(value, found.low, found.high, 0.95, METHOD, ASSUMES, 0))


def _row_numbers(answered: Answered, source: Source) -> NDArray[np.int64]:
    """Where the answered rows stand in the table: by number if it is the very file, else by id."""
    record = answered.records[0]
    if record.by_number:
        if record.checksum != checksum(source.path):
            raise InvalidInput(
                f"{source.path.name} is not the file that the audit was planned on, and its rows are known by number "
                "only. Fit on that file, or plan audits with --id."
            )
        return answered.plan.rows
    require_column(record.id, source.columns)
    place = {cell_text(value).strip(): row for row, value in enumerate(source.read([record.id])[record.id])}
    missing = [name for name in answered.ids if name not in place]
    if missing:
        raise InvalidInput(
            f"column {record.id!r} does not hold {listed(missing)}, which were answered. Fit on the table that the "
            "audit was planned on."
        )
    return np.array([place[name] for name in answered.ids], dtype=np.int64)
