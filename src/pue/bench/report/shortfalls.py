"""What a suite's results fall short of, in sentences computed from its lines."""

from __future__ import annotations

from collections.abc import Sequence

from pue.report.lines import Line, difference
from pue.report.paper import SEEDS
from pue.report.spread import Spread
from pue.report.tables import flavored, own_flavor

BEST_ALPHA = 15.0
"""The paper's best α_e (CIFAR-10, Dist-PUe)."""


def shortfalls(lines: Sequence[Line]) -> list[str]:
    """One sentence for each kind of shortfall, or that there is none of it."""
    found = [
        *(_below(lines, metric) for metric in ("accuracy", "auc", "ap")),
        _gains(lines),
        _undecided(lines),
        _missing(lines),
        _few(lines),
        _warned(lines),
        _alpha(lines),
    ]
    return [sentence for sentence in found if sentence]


def _below(lines: Sequence[Line], metric: str) -> str:
    title = metric if metric == "accuracy" else metric.upper()
    compared = [line for line in lines if line.ours and line.paper]
    if not compared:
        return "No run here can be compared with a row that the paper prints." if metric == "accuracy" else ""
    short = [text for line in compared if (text := _short(line, metric))]
    if not short:
        return f"The {title} of all {len(compared)} rows that can be compared reaches the paper's."
    return f"The {title} of {len(short)} of {len(compared)} rows is below the paper's: {'; '.join(short)}."


def _short(line: Line, metric: str) -> str:
    """By how much a row is below the paper's, or nothing."""
    assert line.ours is not None
    name = metric if metric == "accuracy" else flavored(metric, own_flavor(line))
    apart = difference(line.ours, line.paper, name, metric)
    return f"{line.name} by {-apart:.2f} (n = {len(line.ours.records)})" if apart is not None and apart < 0 else ""


def _gains(lines: Sequence[Line]) -> str:
    decided = [(line, line.gain, line.gain.spreads) for line in lines if line.gain and line.gain.spreads is not None]
    if not decided:
        return ""
    short = [
        f"{line.name} {gain.gain.mean:+.2f} against {spreads:.2f} (n = {gain.gain.n})"
        for line, gain, spreads in decided
        if not gain.exceeds
    ]
    if not short:
        return f"All {len(decided)} e-rows are above their plain row by more than sd plain + sd e."
    return f"The gain of {len(short)} of {len(decided)} e-rows does not exceed sd plain + sd e: {'; '.join(short)}."


def _undecided(lines: Sequence[Line]) -> str:
    single = [f"{line.name} {line.gain.gain.mean:+.2f}" for line in lines if line.gain and line.gain.exceeds is None]
    return f"Gains from one common seed, so without a spread: {'; '.join(single)}." if single else ""


def _missing(lines: Sequence[Line]) -> str:
    names = [line.name for line in lines if line.ours is None]
    return f"No run for {len(names)} of the paper's rows: {'; '.join(names)}." if names else ""


def _few(lines: Sequence[Line]) -> str:
    counts = [(line.name, len(line.ours.records)) for line in lines if line.ours]
    few: dict[int, list[str]] = {}
    for name, n in counts:
        if n < SEEDS:
            few.setdefault(n, []).append(name)
    parts = [f"n = {n} for {'all rows' if len(few[n]) == len(counts) else '; '.join(few[n])}" for n in sorted(few)]
    return f"Fewer seeds than the paper's {SEEDS}: {'. '.join(parts)}." if parts else ""


def _warned(lines: Sequence[Line]) -> str:
    warned = [
        f"{line.name} ({count} of {len(line.ours.records)})"
        for line in lines
        if line.ours and (count := sum(bool(record.warnings) for record in line.ours.records))
    ]
    return f"Runs that ended with a warning, kept in their records: {'; '.join(warned)}." if warned else ""


def _alpha(lines: Sequence[Line]) -> str:
    swept = {each.alpha: each.metric("accuracy") for line in lines if (each := line.ours) and each.alpha is not None}
    if len(swept) < 3:
        return ""
    best = max(swept, key=lambda alpha: swept[alpha].mean)
    text = f"Best α_e: {best:g}, {_with_n(swept[best])}"
    if best != BEST_ALPHA and BEST_ALPHA in swept:
        text += f"; at the paper's best, {BEST_ALPHA:g}, {_with_n(swept[BEST_ALPHA])}"
    return f"{text}."


def _with_n(spread: Spread) -> str:
    return f"{spread.text()} (n = {spread.n})"
