"""What the study was made to show, beside what it shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from answers import JUDGED
from labelings import LABELINGS
from problems import RARE
from tallies import Records, cells, chosen, covered, differences, lost, of_metric, of_prior, recovered, speaks
from untold import WITH_PRIOR, WITHOUT

FIVE = list(LABELINGS)
BIASED, SEEN = FIVE[1:], ["logistic", "kinds"]
CORRECTED = ("blend", "forest")
"""Learners of which the correction is asked what it is worth; the first is what `pue fit` takes."""


@dataclass(frozen=True)
class Target:
    claim: str
    wanted: str
    found: str
    met: bool


def targets(records: Records) -> Iterator[Target]:
    """Only those that the records say something about."""
    for part in (_gain, _harm, _baselines, _prior, _metrics, _rare, _drivers, _trees):
        yield from part(records)


def _gain(records: Records) -> Iterator[Target]:
    for learner in CORRECTED:
        ratio = recovered(records, learner, SEEN)
        if ratio:
            found = f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]"
            claim = f"recovered gain of `auto`, {learner}, logistic and kinds"
            yield Target(claim, "≥ 0.85", found, ratio.value >= 0.85)
        near = _points(records, f"{learner}/auto", "forest/true", SEEN)
        if near is not None:
            claim = f"{learner} with `auto` minus a forest with true e, there"
            yield Target(claim, "≥ −3 points", f"{near:+.2f}", near >= -3)


def _harm(records: Records) -> Iterator[Target]:
    for learner in CORRECTED:
        for labeling in ("scar", "hard"):
            change = lost(records, learner, [labeling])
            if change:
                mean, worst = 100 * change[0], 100 * change[1]
                claim = f"{learner}, `auto` minus no correction, {labeling}"
                yield Target(claim, "≥ −0.3 points", f"{mean:+.2f}", mean >= -0.3)
                if labeling == "scar":
                    found = f"{worst:+.2f} ({change[2]})"
                    yield Target("the same on the worst table", "≥ −1 point", found, worst >= -1)


def _baselines(records: Records) -> Iterator[Target]:
    yield from _against(records, "fit/nothing", "`pue fit` and peers, nothing given", WITHOUT)
    yield from _against(records, "fit/nothing", "nothing given, but peers told the true prior", WITH_PRIOR)
    yield from _against(records, "fit/prior", "all told the true prior", WITH_PRIOR)


def _against(records: Records, method: str, who: str, names: list[str]) -> Iterator[Target]:
    there = {key.method for key in records}
    rivals = [name for name in names if name in there]
    found = cells(records, method, rivals, FIVE) if rivals else {}
    if not found:
        return
    ahead = float(np.mean([row[0] > row[1:].max() for row in found.values()]))
    claim = f"{who}: ahead of every peer and baseline"
    yield Target(claim, "≥ 80 % of cells", f"{100 * ahead:.0f} % of {len(found)}", ahead >= 0.8)
    biased = 100 * np.array([row[:1] - row[1:] for (_, kind), row in found.items() if kind in BIASED]).mean(0)
    if biased.size:
        worst = float(biased.min())
        yield Target("the same, mean lead over the best of them, biased", "≥ 5 points", f"{worst:+.1f}", worst >= 5)
    simple = sum(name.startswith("baseline/") for name in rivals)
    behind = [_lead(found, labeling, simple) for labeling in FIVE]
    worst = min(lead for lead in behind if lead is not None)
    yield Target("the same minus the best baseline, worst labeling", "≥ −1 point", f"{worst:+.1f}", worst >= -1)


def _lead(found: dict[tuple[str, str], np.ndarray], labeling: str, baselines: int) -> float | None:
    rows = [row for (_, kind), row in found.items() if kind == labeling]
    return None if not rows else float(100 * np.mean([row[0] - row[1 : 1 + baselines] for row in rows], axis=0).min())


def _prior(records: Records) -> Iterator[Target]:
    for method, title in (("fit/nothing", "`pue fit`"), ("prior/estimate", "`estimate_prior`")):
        found = covered(chosen(records, method, FIVE), of_prior)
        error, inside = found["absolute"], found["coverage"]
        if error and inside:
            yield Target(f"error of the prior, {title}", "≤ 0.07", f"{error.value:.3f}", error.value <= 0.07)
            share = f"{100 * inside.value:.0f} % of {inside.n}"
            yield Target(f"its interval holds the truth, {title}", "≥ 90 %", share, inside.value >= 0.9)


def _metrics(records: Records) -> Iterator[Target]:
    for kind, command in (("estimated", "`pue fit`"), ("evaluated", "`pue evaluate`")):
        for name in JUDGED:
            free = covered(chosen(records, "fit/nothing", FIVE), of_metric(kind, name))
            given = covered(chosen(records, "fit/prior", FIVE), of_metric(kind, name))
            inside, signed, width, narrow = free["coverage"], free["signed"], free["width"], given["width"]
            if inside and signed:
                good = inside.value >= 0.9 and abs(signed.value) <= 0.03
                found = f"{100 * inside.value:.0f} % of {inside.n}, {100 * signed.value:+.1f}"
                yield Target(f"{name} of {command}: coverage, error", "≥ 90 %, within ± 3", found, good)
            if width and narrow:
                ratio = narrow.value / width.value if width.value else float("nan")
                yield Target(f"{name} of {command}: width, prior given / not", "≤ 0.5", f"{ratio:.2f}", ratio <= 0.5)


def _rare(records: Records) -> Iterator[Target]:
    for method in ("fit/prior", "fit/nothing"):
        for value in ("auc", "ap"):
            gap = _points(records, method, "baseline/ranking", list(RARE), value)
            if gap is not None:
                yield Target(f"rare positives: {value} of {method} minus plain ranking", "≥ 0", f"{gap:+.2f}", gap >= 0)
        fits = chosen(records, method, list(RARE))
        if fits:
            constant = sum(record["constant"] for record in fits)
            yield Target(f"constant models of {method}", "0 of 200", f"{constant} of {len(fits)}", constant == 0)


def _drivers(records: Records) -> Iterator[Target]:
    rejected = [record for record in chosen(records, "fit/nothing", ["logistic"]) if speaks(record)]
    right = [bool(r["first_driver_is_right"]) for r in rejected if r["first_driver_is_right"] is not None]
    if right:
        share = float(np.mean(right))
        yield Target(
            "first driver right where SCAR is rejected", "≥ 80 %", f"{100 * share:.0f} % of {len(right)}", share >= 0.8
        )


def _trees(records: Records) -> Iterator[Target]:
    for learner in ("forest", "boosting"):
        times = differences(records, "seconds", [f"{learner}/auto", "network/auto"], FIVE)
        gap = _points(records, f"{learner}/auto", "network/auto", FIVE)
        if times and gap is not None:
            ours, network = np.mean(list(times.values()), axis=0)
            ratio = f"{ours / network:.2f}"
            yield Target(f"seconds of {learner} / network, auto", "≤ 0.25", ratio, bool(ours / network <= 0.25))
            yield Target(f"accuracy of {learner} minus network, auto", "≥ 0 points", f"{gap:+.2f}", gap >= 0)


def _points(records: Records, method: str, other: str, labelings: list[str], value: str = "accuracy") -> float | None:
    tables = differences(records, value, [method, other], labelings)
    return 100 * float(np.mean([a - b for a, b in tables.values()])) if tables else None
