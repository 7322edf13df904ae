"""What a diagnosis holds, and says in words: what was found, and what to do."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from pue.core.data import Scenario
from pue.diagnosis.figure import draw
from pue.files import writing
from pue.judging.notebooks import as_html
from pue.priors import PriorEstimate
from pue.propensity import PropensityReport
from pue.propensity.scar import FEWEST_LABELED, ScarTest

ANSWERS = 100
WIDE = 0.15
"""A range of the prior wider than this is worth an audit: so large a share of the rows changes class inside it."""


@dataclass(frozen=True)
class Driver:
    """A column in which the labeled rows differ from the estimated positives: the part of the difference that it makes
    itself, other columns being equal, in standard deviations of the positives."""

    name: str
    difference: float


@dataclass(frozen=True)
class Bound:
    """A bound of the paper on this data, for a loss in [0, 1]."""

    name: str
    value: float
    rigorous: bool


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What was found; `summary()` says it in words, `plot()` in four panels."""

    n_rows: int
    n_labeled: int
    scenario: Scenario
    prior: PriorEstimate
    """As given (then the interval is a point) or estimated."""
    scar: ScarTest | None
    """None where there are too few rows to test."""
    drivers: tuple[Driver, ...]
    """Largest difference first; empty for images and where nothing could be tested."""
    propensity: Tensor | None = field(repr=False)
    """ê of the labeled rows, clipped."""
    unlabeled_propensity: Tensor | None = field(repr=False)
    """ê of unlabeled rows, of at most 10,000 drawn at random."""
    report: PropensityReport | None
    memorized: bool
    """Does the propensity model give its own labeled rows far more than held-out ones?"""
    bounds: tuple[Bound, ...]
    recall: tuple[tuple[float, float, float], ...]
    """(Γ, lowest, highest) share of the positives that the test's ranking finds among its first π n rows."""
    relatives: float | None = None
    """Share of images that have a near-identical one, where images come in such families."""

    @property
    def healthy(self) -> bool:
        """Are enough labeled rows left after weighting, and none of them in charge?"""
        r = self.report
        return r is not None and not self.memorized and r.effective_sample_size >= max(30, 0.1 * r.n_labeled)

    @property
    def or_fewer(self) -> bool:
        """Biased, or fewer positives than estimated? See `ScarTest.or_fewer`."""
        return self.scar is not None and self.scar.or_fewer

    @property
    def verdict(self) -> str:
        """What the test of SCAR says, and what it rests on."""
        if self.scar is None:
            return "too few rows to test"
        fewer = (
            f" The interval of the share of positives begins at {self.prior.low:.2g}: fewer positives than estimated "
            "would look the same as a bias."
        )
        return f"{self.scar}{fewer if self.or_fewer else ''}"

    @property
    def recommendation(self) -> str:
        """What to do, in plain words."""
        return " ".join(_advice(self))

    def summary(self) -> str:
        """The report as text."""
        lines = [(f"{name:16}", text) for name, text in _lines(self)]
        return "\n".join(
            textwrap.fill(text, 110, initial_indent=name, subsequent_indent=" " * 16) for name, text in lines
        )

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        facts: dict[str, str] = {}
        for name, text in _lines(self):
            last = name or list(facts)[-1]
            facts[last] = f"{facts[last]}; {text}" if last in facts else text
        return as_html("Diagnosis of a labeling", facts)

    def plot(self, path: str | Path | None = None) -> Any:
        """A matplotlib figure: propensities, weights, the SCAR test and the drivers; written to `path` if given."""
        figure = draw(self)
        if path is not None:
            kind = Path(path).suffix or ".png"
            with writing(Path(path).with_suffix(kind)) as partial:
                figure.savefig(partial, dpi=120, format=kind[1:])
        return figure


def _lines(d: Diagnosis) -> Iterator[tuple[str, str]]:
    yield "Data", f"{d.n_rows} rows, {d.n_labeled} labeled, {d.scenario.value}"
    yield "Prior", str(d.prior)
    yield "SCAR", d.verdict
    if d.relatives is not None:
        yield "Near-duplicates", f"{d.relatives:.0%} of the images have a near-identical one"
    if d.drivers:
        yield "Drivers", ", ".join(f"{driver.name} {driver.difference:+.2f} sd" for driver in d.drivers[:5])
    if d.report is not None:
        yield "Weights", _weights_in_words(d.report) + "; the propensity model knows its rows by heart" * d.memorized
    for number, (gamma, low, high) in enumerate(d.recall):
        doubt = "as estimated" if gamma == 1 else f"wrong by up to a factor {gamma:g}"
        share = f"{low:.2f}" if gamma == 1 else f"{low:.2f} to {high:.2f}"
        yield "" if number else "Recall", f"{share} of the positives rank in the first π n if e is {doubt}"
    for number, bound in enumerate(d.bounds):
        status = "proved, for these e" if bound.rigorous else "not proved"
        yield "" if number else "Bounds", f"{bound.name}: {bound.value:.3g} ({status})"
    yield "Recommendation", d.recommendation


def _weights_in_words(r: PropensityReport) -> str:
    return (
        f"{r.effective_sample_size:.0f} effective of {r.n_labeled} labeled rows, largest weight {r.largest_weight:.1f} "
        f"times the mean, {r.n_clipped} clipped"
    )


def _advice(d: Diagnosis) -> Iterator[str]:
    """What to do, a sentence at a time."""
    if d.relatives is not None:
        yield (
            "Images come in families of near-identical ones (slices of a scan, frames of a film): a held-out image is "
            "recognised by its relatives in training, and every score of it flatters. Hold whole families out: "
            "pue.propensity.duplicates.families(images).family, as groups of content_folds or of a group split."
        )
    if d.scar is None:
        yield f"Label at least {FEWEST_LABELED} rows; with fewer neither the bias nor its repair can be judged."
        return
    if not d.scar.speaks:
        yield 'The labels may be a random sample of the positives: start with a plain method such as "nnpu".'
        if d.report is not None and d.report.effective_sample_size < 0.5 * d.report.n_labeled:
            yield "Weights would cost more than half of the labeled rows here."
    elif d.healthy:
        yield f'{_biased(d)}: estimate propensities (propensity="auto") and let the method weight by them.'
    elif d.report is None:
        yield f"{_biased(d)}: estimate propensities and look at their weights."
    else:
        yield (
            f"{_biased(d)}, but the weights rest on few rows: weighting may do more harm than good. Compare "
            "both, raise propensity_floor or choose a simpler propensity estimator."
        )
    if d.scar.speaks:
        yield _collect(d)
    if d.prior.high - d.prior.low > WIDE:
        yield (
            f"The prior is an estimate and may lie anywhere between {d.prior.low:.2f} and {d.prior.high:.2f}. A "
            f"hundred answers would bring it to about ±{_half_width(d):.2f}, whatever the labels' bias: pue audit plan "
            "says which rows."
        )
    elif not d.prior.is_given:
        yield "The prior is an estimate; one from outside the data would make all of this firmer."


def _biased(d: Diagnosis) -> str:
    """No more than the test can tell."""
    return "The labels are biased" + ", or there are fewer positives than estimated" * d.or_fewer


def _half_width(d: Diagnosis) -> float:
    """Of the prior's 95 % interval after `ANSWERS` answers about unlabeled rows drawn at random."""
    unlabeled = 1 - d.n_labeled / d.n_rows if d.scenario is Scenario.SINGLE_SAMPLE else 1.0
    hidden = min(max((d.prior.value - (1 - unlabeled)) / unlabeled, 0.0), 1.0)
    return 1.96 * unlabeled * math.sqrt((hidden * (1 - hidden) + 1 / ANSWERS) / ANSWERS)


def _collect(d: Diagnosis) -> str:
    if not d.drivers:
        return "Next, label positives that look unlike those labeled so far."
    top = d.drivers[0]
    rare = "low" if top.difference > 0 else "high"
    return f"Next, label positives with {rare} {top.name}: they are rare among the labels."
