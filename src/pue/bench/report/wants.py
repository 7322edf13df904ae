"""Why a row cannot be higher: what its risk wants with these labels (`theory.population_minimizer`)."""

from __future__ import annotations

from collections.abc import Sequence

from pue.bench.report.groups import Group
from pue.bench.report.rows import ResultRow
from pue.core.minimizer import WANTS, Minimizer, population_minimizer

MEMBERS = {
    "mnist": ((5923, 5958, 5842, 5918, 5851), (6742, 6131, 5421, 6265, 5949)),
    "cifar10": ((5000,) * 4, (5000,) * 6),
}
"""Training images of each positive class, in the order of the mix, and of each negative one."""
NAMES = {"mnist": "02468", "cifar10": ("airplane", "automobile", "ship", "truck")}


def wants(rows: Sequence[ResultRow]) -> list[str]:
    """A sentence for each row below the paper's whose risk, at its minimum, does not call every positive class so."""
    return [text for row in rows if row.ours and row.paper and row.reaches is False and (text := _told(row, row.ours))]


def _told(row: ResultRow, ours: Group) -> str:
    found, printed = minimum(ours), row.paper.metrics["accuracy"].mean if row.paper else 0.0
    if found is None or found.highest > 0.99:
        return ""
    names = NAMES[ours.dataset]
    clear = [(name, found.called[k]) for k, name in enumerate(names) if k not in found.draws]
    parts = [
        f"{', '.join(name for name, called in clear if called == wanted)} {kind}"
        for kind, wanted in (("positive", 1.0), ("negative", 0.0))
    ]
    if found.draws:
        parts.append(f"{', '.join(names[k] for k in found.draws)} a draw")
    above = 100 * found.highest
    beyond = " A training that stops early can be above it; a lower risk cannot." if printed > above else ""
    return (
        f"What the risk of {row.name} wants with these labels (theory.population_minimizer, classes that do not "
        f"overlap): {'; '.join(parts)}; so {100 * found.lowest:.1f} to {above:.1f} % accuracy at its minimum. The "
        f"paper prints {printed:.2f}.{beyond}"
    )


def minimum(ours: Group) -> Minimizer | None:
    """What the risk of these runs wants, if they take biased labels for unbiased and the classes are known."""
    method, mix = str(ours.settings["method"]), ours.labels.get("mix")
    if method not in WANTS or ours.settings["propensity"] != "none" or ours.dataset not in MEMBERS or not mix:
        return None
    positive, negative = MEMBERS[ours.dataset]
    every = (*positive, *negative)
    shares = [members / sum(every) for members in every]
    return population_minimizer(method, shares=shares, mix=[*mix, *[0.0] * len(negative)])
