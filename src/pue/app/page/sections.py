"""Summary → what each section of the page shows; None leaves a section out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pue.app.page.curves import calibration, history, weight_curve
from pue.app.page.formats import (
    METRICS,
    NOTHING,
    column,
    count,
    estimate,
    finite,
    interval,
    level,
    metric,
    number,
    p_value,
    roughly,
    setting,
    share,
)
from pue.app.page.histograms import both, histogram, null_histogram, shares_above
from pue.app.page.ranges import bar, forest, in_words, prior_range
from pue.app.page.threshold import own_line, score_bins, score_histogram, threshold_section
from pue.app.thumbnails import is_thumbnail

Summary = Mapping[str, Any]
View = dict[str, Any]

AUDITED = {
    "prior": "Share of positives",
    **{name: METRICS[name] for name in ("precision", "recall", "accuracy", "f1")},
}
DONE = (
    "The labels are biased: estimate propensities",
    "The labels may be a random sample of the positives: start with",
)
HOW = {
    "platt": "Scores became probabilities by a logistic curve.",
    "isotonic": "Scores became probabilities by the best rising steps.",
}
SAMPLING = {
    "single_sample": "one table, of which some rows are labeled",
    "case_control": "labeled rows collected beside the others",
}
MOST_DRIVERS, MOST_ROWS, MOST_COLUMNS = 12, 100, 300


def _notes(summary: Summary) -> View | None:
    notes = {name: list(summary.get(name) or []) for name in ("warnings", "advice")}
    if summary.get("method"):  # what was done is no advice
        notes["advice"] = [text for text in map(_undone, notes["advice"]) if text]
    return notes if any(notes.values()) else None


def _undone(text: object) -> str:
    """Advice without the sentences that say to do what `pue fit` did."""
    parts = re.split(r"(?<=[.:]) (?=[A-Z])", str(text))
    return " ".join(part for part in parts if not part.startswith(DONE))


def _metrics(summary: Summary) -> View | None:
    ours, scar = ((summary.get(name) or {}).get("values") or {} for name in ("metrics", "scar_metrics"))
    names = [name for name in METRICS if name in ours or name in scar]
    if not names:
        return None
    metrics = summary.get("metrics") or {}
    return {
        "rows": [
            {"name": METRICS[name], "ours": metric(name, ours.get(name)), "scar": metric(name, scar.get(name))}
            for name in names
        ],
        "scar": bool(scar),
        "chart": forest(
            [(METRICS[name], ours.get(name) or {}, scar.get(name) or {}) for name in names if name != "flagged"],
            "The same numbers as in the table.",
        ),
        "level": level(metrics.get("level")),
        "n_labeled": count(metrics.get("n_labeled")),
        "n_population": count(metrics.get("n_population")),
        "how": _sentence(str(metrics.get("how") or "")),
        **{name: str(metrics.get(name) or "") for name in ("assumption", "trivial")},
    }


def _sentence(text: str) -> str:
    """
    >>> _sentence("rows scored by others")
    'Rows scored by others.'
    """
    return text and text[:1].upper() + text[1:].rstrip(".") + "."


def _bias(summary: Summary) -> View | None:
    scar, drivers = summary.get("scar") or {}, list(summary.get("drivers") or [])
    if not scar and not drivers:
        return None
    largest = max((abs(finite(each.get("difference")) or 0.0) for each in drivers), default=0.0) or 1.0
    return {
        "tested": bool(scar),
        "found": _found(scar),
        "text": str(scar.get("text") or ""),
        "p": p_value(scar.get("p_value")),
        "statistic": number(scar.get("statistic")),
        "null": null_histogram(scar.get("null") or [], scar.get("statistic")),
        "drivers": [_driver(each, largest) for each in drivers[:MOST_DRIVERS]],
        "more": max(0, len(drivers) - MOST_DRIVERS),
    }


def _found(scar: Summary) -> str:
    """No more than the test can tell."""
    if scar.get("or_fewer"):
        return "They are biased, or there are fewer positives than estimated"
    return "Yes, they are biased" if scar.get("rejected") else "No bias was found"


def _driver(each: Summary, largest: float) -> View:
    difference = finite(each.get("difference"))
    words = NOTHING if difference is None else f"{difference:+.2f}".replace("-", "−")
    return {"name": str(each.get("name")), "bar": bar(difference, largest), "difference": words}


def _prior(summary: Summary) -> View | None:
    prior = summary.get("prior") or {}
    if finite(prior.get("value")) is None:
        return None
    value, ends = estimate(prior, share)
    return {
        "value": value,
        "given": prior.get("method") == "given",
        "interval": "" if prior.get("low") == prior.get("high") else ends,
        "level": level(prior.get("level")),
        "chart": prior_range(prior),
        "moves": in_words(prior["range"]) if prior.get("range") else "",
        "method": str(prior.get("method") or ""),
        "assumes": str(prior.get("assumes") or ""),
    }


def _propensity(summary: Summary) -> View | None:
    found = summary.get("propensity")
    if not found:
        return None
    return {
        "alarm": str(found.get("alarm") or ""),
        "found": found,
        "chart": histogram(
            "propensities",
            "Chances of a label, of labeled and unlabeled rows",
            "The labeled rows are an outline, the unlabeled ones an area.",
            both(found.get("labeled"), found.get("unlabeled")),
            "chance of a label",
        ),
        "weights": weight_curve(found.get("weight_curve") or []),
    }


def _scores(summary: Summary) -> View | None:
    mark = own_line((summary.get("threshold") or {}).get("value"))
    chart = score_histogram(summary, "scores-chart", mark)
    if chart is None:
        return None
    return {"chart": chart, "above": shares_above(score_bins(summary), mark), "marked": bool(mark)}


def _calibration(summary: Summary) -> View | None:
    found = summary.get("calibration") or {}
    chart = calibration(found.get("bins") or [])
    if chart is None:
        return None
    method = str(found.get("method") or "")
    return {
        "chart": chart,
        "bins": [
            [*(roughly(each.get(name)) for name in ("predicted", "estimated")), _ends(each), share(each.get("share"))]
            for each in found["bins"]
        ],
        "method": HOW.get(method, method),
    }


def _ends(each: Summary) -> str:
    return interval(each.get("low"), each.get("high"), roughly)


def _bounds(summary: Summary) -> View | None:
    bounds = list(summary.get("bounds") or [])
    named = {name: METRICS[name] for name in ("recall", "precision") if any(each.get(name) for each in bounds)}
    if not named:
        return None
    rows = [[setting(each.get("gamma")), *(_range(each.get(name)) for name in named)] for each in bounds]
    return {"names": list(named.values()), "rows": rows}


def _range(ends: Any) -> str:
    low, high = ends or (None, None)
    return share(low) if low == high else interval(low, high, share)


def _top(summary: Summary) -> View | None:
    top = summary.get("top_rows") or {}
    rows = list(top.get("rows") or [])
    if not rows:
        return None
    names, why = list(top.get("columns") or []), list(top.get("why") or [])
    if len(why) == len(rows):
        names = [*names[:2], "moved most by", *names[2:]]
        rows = [[*row[:2], words, *row[2:]] for row, words in zip(rows, why, strict=True)]
    images = [address if is_thumbnail(address) else "" for address in top.get("images") or []]
    columns = list(zip(*rows[:MOST_ROWS], strict=True))
    numeric = [any(finite(value) is not None for value in values) for values in columns]
    return {
        "columns": list(zip([str(name) for name in names], numeric, strict=True)),
        "rows": [list(zip(row, numeric, strict=True)) for row in zip(*map(column, columns), strict=True)],
        "images": images[:MOST_ROWS] if len(images) == len(rows) and any(images) else [],
        "more": max(0, len(rows) - MOST_ROWS),
    }


def _history(summary: Summary) -> View | None:
    epochs = list((summary.get("method") or {}).get("history") or [])
    chart = history(epochs)
    if chart is None:
        return None
    validated = any(finite(each.get("validation")) is not None for each in epochs)
    return {"chart": chart, "n": count(len(epochs)), "validated": validated, "last": number(epochs[-1].get("risk"))}


def _audit(summary: Summary) -> View | None:
    """What answers found, beside what the model had promised."""
    audit = summary.get("audit")
    if not audit:
        return None
    said, agrees = audit.get("promised") or {}, audit.get("agrees") or {}
    names = [name for name in AUDITED if audit.get(name)]
    return {
        "rows": [
            {
                "name": AUDITED[name],
                "found": metric(name, audit[name]),
                "promised": metric(name, said.get(name)),
                "agree": ("yes" if agrees[name] else "no") if name in agrees else NOTHING,
            }
            for name in names
        ],
        "answered": count(audit.get("answered")),
        "yes": count(audit.get("yes")),
        "unanswered": count(audit.get("unanswered")) if audit.get("unanswered") else "",
        "level": level(audit.get("level")),
        "trained_on": bool(audit.get("trained_on")),
    }


def _made(summary: Summary) -> View | None:
    data, method = summary.get("data") or {}, summary.get("method") or {}
    facts = [
        ("Data", data.get("source")),
        ("Label column", data.get("label")),
        ("Identifier column", data.get("id")),
        ("Sampling", SAMPLING.get(str(data.get("scenario")), data.get("scenario"))),
        ("Method", method.get("display") or method.get("name")),
        ("Model", method.get("model")),
        ("Chances of a label", method.get("propensity")),
        ("Seed", method.get("seed")),
        ("Made with", f"pue {summary['version']}" if summary.get("version") else None),
    ]
    columns, dropped = list(data.get("columns") or []), list(data.get("dropped") or [])
    view = {
        "facts": [(name, setting(value)) for name, value in facts if value is not None],
        "settings": [(str(name), setting(value)) for name, value in (method.get("settings") or {}).items()],
        "columns": [(str(each.get("name")), str(each.get("kind") or "")) for each in columns[:MOST_COLUMNS]],
        "more": max(0, len(columns) - MOST_COLUMNS),
        "dropped": [(str(each.get("name")), str(each.get("reason") or "")) for each in dropped[:MOST_COLUMNS]],
        "more_dropped": max(0, len(dropped) - MOST_COLUMNS),
    }
    return view if any(view.values()) else None


SECTIONS: dict[str, Callable[[Summary], View | None]] = {
    "notes": _notes,
    "threshold": threshold_section,
    "metrics": _metrics,
    "audit": _audit,
    "bias": _bias,
    "prior": _prior,
    "propensity": _propensity,
    "scores": _scores,
    "calibration": _calibration,
    "bounds": _bounds,
    "top": _top,
    "history": _history,
    "made": _made,
}
