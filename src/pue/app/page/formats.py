"""Numbers as people read them: three significant digits, thousands separated, shares in percent, a dash for nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from numbers import Real
from typing import Any

from pue.judging.estimates import ESTIMATED
from pue.judging.truth import RANKING

NOTHING = "–"
EXPONENTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def finite(value: object) -> float | None:
    """The value as a float; None where it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    return float(value) if math.isfinite(value) else None


def number(value: object) -> str:
    """
    >>> number(0.81249), number(-1234.5), number(7), number(0.0000123), number(float("nan"))
    ('0.812', '−1,234', '7.00', '1.23 × 10⁻⁵', '–')
    """
    x = finite(value)
    if x is None:
        return NOTHING
    if x == 0 or abs(x) >= 100:
        return f"{x:,.0f}".replace("-", "−")
    mantissa, exponent = f"{x:.2e}".split("e")
    if int(exponent) < -4:
        return f"{mantissa} × 10{str(int(exponent)).translate(EXPONENTS)}".replace("-", "−")
    return f"{x:.{max(0, 2 - int(exponent))}f}".replace("-", "−")


def share(value: object) -> str:
    """
    >>> share(0.8125), share(1.0), share(0.99999), share(0.05), share(None)
    ('81.2%', '100%', '>99.9%', '5.00%', '–')
    """
    x = finite(value)
    if x is None:
        return NOTHING
    if 0.9995 <= x < 1:
        return ">99.9%"
    return "<0.001%" if 0 < x < 1e-5 else f"{number(100 * x)}%"


def roughly(value: object) -> str:
    """A share to a tenth of a percent, where more would not be believed.

    >>> roughly(0.00003), roughly(0.0), roughly(0.0358), roughly(0.249), roughly(1.0)
    ('<0.1%', '0%', '3.6%', '24.9%', '100%')
    """
    x = finite(value)
    if x is None or not 0 < x < 0.9995:
        return share(value)
    return "<0.1%" if x < 0.0005 else f"{100 * x:.1f}%"


def level(value: object) -> str:
    """
    >>> level(0.95)
    '95%'
    """
    x = finite(value)
    return NOTHING if x is None else f"{100 * x:g}%"


def interval(low: object, high: object, form: Callable[[object], str]) -> str:
    """As short as it is clear: a dash between plain numbers, words between others.

    >>> interval(0.7, 0.85, share), interval(0.99, 0.9999, share), interval(-1.0, 2.0, number)
    ('70.0–85.0%', '99.0% to >99.9%', '−1.00 to 2.00')
    """
    ends = form(low), form(high)
    if NOTHING in ends:
        return NOTHING if ends[0] == ends[1] else " to ".join(ends)
    if ends[0] == ends[1]:
        return ends[0]
    plain = all(end[0].isdigit() for end in ends)
    return f"{ends[0].removesuffix('%')}–{ends[1]}" if plain else " to ".join(ends)


def estimate(part: Mapping[str, Any] | None, form: Callable[[object], str]) -> tuple[str, str]:
    """A value and its interval, both as text.

    >>> estimate({"value": 0.5, "low": 0.4, "high": 0.6}, share)
    ('50.0%', '40.0–60.0%')
    """
    part = part or {}
    return form(part.get("value")), interval(part.get("low"), part.get("high"), form)


def count(value: object) -> str:
    """
    >>> count(12345), count(None)
    ('12,345', '–')
    """
    x = finite(value)
    return NOTHING if x is None else f"{round(x):,}"


def p_value(value: object) -> str:
    """
    >>> p_value(0.0004), p_value(0.001), p_value(0.0312), p_value(0.31)
    ('p < 0.001', 'p = 0.001', 'p = 0.031', 'p = 0.31')
    """
    x = finite(value)
    if x is None:
        return f"p = {NOTHING}"
    return "p < 0.001" if x < 0.001 else f"p = {max(round(x, 3), 0.001):g}"


def duration(seconds: object) -> str:
    """
    >>> duration(0.5), duration(754.0), duration(9000.0)
    ('0.500 seconds', '12.6 minutes', '2.50 hours')
    """
    x = finite(seconds)
    if x is None:
        return NOTHING
    unit, size = next((u, s) for u, s in (("hours", 3600), ("minutes", 60), ("seconds", 1)) if x >= 2 * s or s == 1)
    return f"{number(x / size)} {unit}"


def date(text: object) -> str:
    """
    >>> date("2026-03-01T09:05:00+00:00"), date("yesterday"), date(None)
    ('1 March 2026, 09:05 UTC', 'yesterday', '–')
    """
    if not text:
        return NOTHING
    try:
        when = datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    return f"{when.day} {when:%B %Y, %H:%M} {when.tzname() or ''}".rstrip()


def column(values: Sequence[object]) -> list[str]:
    """A column of the user's table; whole numbers stay as they are, for they may be names or years.

    >>> column([1234567, 2019.0, None]), column([1234.0, 0.73912]), column([True, "a"])
    (['1234567', '2019', '–'], ['1,234', '0.739'], ['yes', 'a'])
    """
    known = [x for value in values if (x := finite(value)) is not None]
    whole = all(x == round(x) for x in known)
    return [_word(value) if finite(value) is None else _whole(value) if whole else number(value) for value in values]


def _whole(value: object) -> str:
    return str(round(value) if isinstance(value, float) else value)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NOTHING if value is None or isinstance(value, Real) else str(value)


def setting(value: object) -> str:
    """A setting, as it would be typed.

    >>> setting(0.0001), setting("adam"), setting(False), setting(None)
    ('0.0001', 'adam', 'no', '–')
    """
    return f"{value:g}" if isinstance(value, float) and math.isfinite(value) else column([value])[0]


METRICS = {name: title[:1].upper() + title[1:] for name, title in ESTIMATED.items()}
"""Name → heading of the metrics, in the order in which they are shown."""


def metric(name: str, part: Mapping[str, Any] | None) -> tuple[str, str]:
    """The estimate of a metric and its interval, both as text: shares of rows in percent, the others as they are.

    >>> metric("recall", {"value": 0.5, "low": 0.4, "high": 0.6}), metric("f1", None)
    (('50.0%', '40.0–60.0%'), ('–', '–'))
    """
    return estimate(part, number if name in ("f1", *RANKING) else share)
