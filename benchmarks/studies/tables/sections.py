"""The parts of the page, each a Markdown table made from records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from answers import JUDGED
from labelings import LABELINGS
from methods import TITLES
from ours import BACKBONES
from problems import RARE
from tables import TABLES
from tallies import (
    Mean,
    Ratio,
    Records,
    cells,
    chosen,
    covered,
    differences,
    lost,
    mean_of,
    of_metric,
    of_prior,
    recovered,
    speaks,
)
from untold import WITH_PRIOR, WITHOUT

FIVE = list(LABELINGS)
BIASED = FIVE[1:]
SEEN = ["logistic", "kinds"]
"""The labelings whose bias the data can show."""
FITS = ("fit/nothing", "fit/prior")


def rows_and_columns(records: Records) -> Iterator[str]:
    names = [name for name in TABLES if any(key.table == name and key.labeling in FIVE for key in records)]
    for name in names:
        record = next(r for k, r in records.items() if k.table == name and k.labeling in FIVE)
        prior = next(
            (
                r["true_prior"]
                for k, r in records.items()
                if k.table == name and k.labeling in FIVE and "true_prior" in r
            ),
            None,
        )
        share = "" if prior is None else f"{prior:.2f}"
        table = TABLES[name]
        yield _row(
            name, table.source, f"{record['rows']:,} × {record['columns']}", share, table.description.rstrip(".")
        )


def by_method(records: Records, value: str) -> Iterator[str]:
    for method, title in TITLES.items():
        means = [mean_of(records, value, method, [labeling]) for labeling in FIVE]
        if any(means):
            yield _row(title, *map(_percent, means), _percent(mean_of(records, value, method, BIASED)), _n(means))


def gains(records: Records) -> Iterator[str]:
    for learner in BACKBONES:
        ratios = [recovered(records, learner, group) for group in (["logistic"], ["kinds"], SEEN, ["easy"], ["hard"])]
        if any(ratios):
            yield _row(
                learner,
                *map(_ratio, ratios),
                _change(lost(records, learner, ["scar"])),
                _change(lost(records, learner, ["hard"])),
            )


def duels(records: Records, method: str = "fit/nothing") -> Iterator[str]:
    """The method minus a rival in accuracy, by labeling, and in how many (table, labeling) it is ahead."""
    each = {TITLES[rival]: [rival] for rival in dict.fromkeys([*WITHOUT, *WITH_PRIOR])}
    best = {"the best of them, told nothing": WITHOUT, "the best of them, told the prior": WITH_PRIOR}
    for title, names in (each | best).items():
        rivals = [name for name in names if _is_there(records, name)]
        found = cells(records, method, rivals, FIVE) if rivals else {}
        if found:
            by_labeling = [_gap([row for (_, kind), row in found.items() if kind == labeling]) for labeling in FIVE]
            biased = _gap([row for (_, kind), row in found.items() if kind in BIASED])
            ahead = sum(row[0] > row[1:].max() for row in found.values())
            yield _row(title, *by_labeling, biased, f"{ahead}/{len(found)}")


def priors(records: Records) -> Iterator[str]:
    for method in ("prior/estimate", "fit/nothing"):
        for labeling in [*FIVE, *RARE, None]:
            group = FIVE if labeling is None else [labeling]
            found = covered(chosen(records, method, group), of_prior)
            if found["coverage"]:
                levels = sorted({record["prior_level"] for record in chosen(records, method, group)})
                nominal = ", ".join(f"{100 * level:g} %" for level in levels)
                cell = [_plain(found[name]) for name in ("absolute", "signed", "width")]
                yield _row(TITLES[method], labeling or "the five", *cell, _share(found["coverage"]), nominal)


def metrics(records: Records, labelings: Sequence[str] = FIVE) -> Iterator[str]:
    for method in FITS:
        for kind, command in (("estimated", "`pue fit`"), ("evaluated", "`pue evaluate`")):
            for name in JUDGED:
                found = covered(chosen(records, method, labelings), of_metric(kind, name))
                if found["coverage"]:
                    cell = [_percent(found[column]) for column in ("signed", "absolute", "width")]
                    given = "prior given" if method == "fit/prior" else "nothing given"
                    yield _row(command, given, name, *cell, _share(found["coverage"]))


def tests_of_scar(records: Records) -> Iterator[str]:
    """Rejections by labeling; where it rejects and the drivers are known, how often the first named is a true one."""
    for method in FITS:
        shares = []
        for labeling in FIVE:
            said = [speaks(r) for r in chosen(records, method, [labeling]) if r.get("scar_rejected") is not None]
            shares.append(f"{sum(said)}/{len(said)}" if said else "")
        right = [r["first_driver_is_right"] for r in chosen(records, method, ["logistic"])
                 if speaks(r) and r.get("first_driver_is_right") is not None]  # fmt: skip
        if any(shares):
            yield _row(TITLES[method], *shares, f"{sum(right)}/{len(right)}")


def rare(records: Records) -> Iterator[str]:
    """AUC and average precision, and the difference to plain ranking on the same problems."""
    plain = "baseline/ranking"
    for method, title in TITLES.items():
        for labeling in RARE:
            found = chosen(records, method, [labeling])
            if found and found[0].get("auc") is not None:
                gaps = [_against(records, value, method, plain, labeling) for value in ("auc", "ap")]
                means = [_percent(mean_of(records, value, method, [labeling])) for value in ("auc", "ap")]
                constant = sum(record["constant"] for record in found)
                yield _row(
                    title, labeling.partition("-")[2], means[0], gaps[0], means[1], gaps[1], f"{constant}/{len(found)}"
                )


def seconds(records: Records) -> Iterator[str]:
    for method, title in TITLES.items():
        taken = [record["seconds"] for record in chosen(records, method, FIVE)]
        if taken:
            yield _row(title, f"{np.mean(taken):.2f}", f"{np.median(taken):.2f}", f"{max(taken):.1f}", str(len(taken)))


def _row(*values: str) -> str:
    return f"| {' | '.join(values)} |"


def _is_there(records: Records, method: str) -> bool:
    return any(key.method == method for key in records)


def _percent(mean: Mean | None) -> str:
    return "" if mean is None else f"{100 * mean.value:.1f} ± {100 * mean.error:.1f}".replace("-", "−")


def _plain(mean: Mean | None) -> str:
    return "" if mean is None else f"{mean.value:.3f} ± {mean.error:.3f}".replace("-", "−")


def _share(mean: Mean | None) -> str:
    return "" if mean is None else f"{100 * mean.value:.0f} % of {mean.n:,}"


def _n(means: Sequence[Mean | None]) -> str:
    counts = sorted({mean.n for mean in means if mean is not None})
    return "–".join(dict.fromkeys(map(str, (counts[0], counts[-1]))))


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    if not ratio.means_something:
        return f"({100 * ratio.reachable:+.1f} to recover)".replace("-", "−")
    return f"{ratio.value:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]".replace("-", "−")


def _change(found: tuple[float, float, str] | None) -> str:
    return "" if found is None else f"{100 * found[0]:+.2f}, {100 * found[1]:+.1f} on {found[2]}".replace("-", "−")


def _gap(rows: list[np.ndarray]) -> str:
    """The first minus the best of the others, in points, mean over (table, labeling)."""
    return f"{100 * np.mean([row[0] - row[1:].max() for row in rows]):+.1f}".replace("-", "−") if rows else ""


def _against(records: Records, value: str, method: str, other: str, labeling: str) -> str:
    tables = differences(records, value, [method, other], [labeling])
    return f"{100 * np.mean([a - b for a, b in tables.values()]):+.1f}".replace("-", "−") if tables else ""
