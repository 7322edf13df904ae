"""What a suite's results fall short of, in sentences computed from its rows."""

from __future__ import annotations

from collections.abc import Sequence

from pue.bench.record import MeanSd
from pue.bench.report.paper import SEEDS
from pue.bench.report.rows import ResultRow, difference
from pue.bench.report.tables import flavored, own_flavor
from pue.judging.truth import BRIEF, RANKING

BEST_ALPHA = 15.0
"""The paper's best α_e (CIFAR-10, Dist-PUe)."""


def shortfalls(rows: Sequence[ResultRow]) -> list[str]:
    """One sentence for each kind of shortfall, or that there is none of it."""
    below = (_below(rows, metric) for metric in ("accuracy", *RANKING))
    others = (tell(rows) for tell in (_gains, _undecided, _missing, _few, _warned, _alpha))
    return [sentence for sentence in (*below, *others) if sentence]


def _below(rows: Sequence[ResultRow], metric: str) -> str:
    title = BRIEF[metric]
    compared = [row for row in rows if row.ours and row.paper]
    if not compared:
        return "No run here can be compared with a row that the paper prints." if metric == "accuracy" else ""
    short = [text for row in compared if (text := _short(row, metric))]
    if not short:
        return f"The {title} of all {len(compared)} rows that can be compared reaches the paper's."
    return f"The {title} of {len(short)} of {len(compared)} rows is below the paper's: {'; '.join(short)}."


def _short(row: ResultRow, metric: str) -> str:
    """By how much a row is below the paper's, or nothing."""
    assert row.ours is not None
    name = flavored(metric, own_flavor(row)) if metric in RANKING else metric
    apart = difference(row.ours, row.paper, name, metric)
    return f"{row.name} by {-apart:.2f} (n = {len(row.ours.records)})" if apart is not None and apart < 0 else ""


def _gains(rows: Sequence[ResultRow]) -> str:
    decided = [(row, row.gain, row.gain.spreads) for row in rows if row.gain and row.gain.spreads is not None]
    if not decided:
        return ""
    short = [
        f"{row.name} {gain.gain.mean:+.2f} against {spreads:.2f} (n = {gain.gain.n})"
        for row, gain, spreads in decided
        if not gain.exceeds
    ]
    if not short:
        return f"All {len(decided)} e-rows are above their plain row by more than sd plain + sd e."
    return f"The gain of {len(short)} of {len(decided)} e-rows does not exceed sd plain + sd e: {'; '.join(short)}."


def _undecided(rows: Sequence[ResultRow]) -> str:
    single = [f"{row.name} {row.gain.gain.mean:+.2f}" for row in rows if row.gain and row.gain.exceeds is None]
    return f"Gains from one common seed, so without a spread: {'; '.join(single)}." if single else ""


def _missing(rows: Sequence[ResultRow]) -> str:
    names = [row.name for row in rows if row.ours is None]
    return f"No run for {len(names)} of the paper's rows: {'; '.join(names)}." if names else ""


def _few(rows: Sequence[ResultRow]) -> str:
    counts = [(row.name, len(row.ours.records)) for row in rows if row.ours]
    few: dict[int, list[str]] = {}
    for name, n in counts:
        if n < SEEDS:
            few.setdefault(n, []).append(name)
    parts = [f"n = {n} for {'all rows' if len(few[n]) == len(counts) else '; '.join(few[n])}" for n in sorted(few)]
    return f"Fewer seeds than the paper's {SEEDS}: {'. '.join(parts)}." if parts else ""


def _warned(rows: Sequence[ResultRow]) -> str:
    warned = [
        f"{row.name} ({count} of {len(row.ours.records)})"
        for row in rows
        if row.ours and (count := sum(bool(record.warnings) for record in row.ours.records))
    ]
    return f"Runs that ended with a warning, kept in their records: {'; '.join(warned)}." if warned else ""


def _alpha(rows: Sequence[ResultRow]) -> str:
    swept = {each.alpha: each.metric("accuracy") for row in rows if (each := row.ours) and each.alpha is not None}
    if len(swept) < 3:
        return ""
    best = max(swept, key=lambda alpha: swept[alpha].mean)
    text = f"Best α_e: {best:g}, {_with_n(swept[best])}"
    if best != BEST_ALPHA and BEST_ALPHA in swept:
        text += f"; at the paper's best, {BEST_ALPHA:g}, {_with_n(swept[BEST_ALPHA])}"
    return f"{text}."


def _with_n(found: MeanSd) -> str:
    return f"{found.text()} (n = {found.n})"
