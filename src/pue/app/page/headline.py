"""The first paragraph: what was learnt from which data, how well by estimate, and whether the labels are biased."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pue.app.page.formats import METRICS, count, date, duration, finite, interval, level, metric, number, share
from pue.app.page.trust import trust

FIGURES = ("f1", "precision", "recall")


def headline(summary: Mapping[str, Any]) -> dict[str, Any]:
    metrics = summary.get("metrics") or {}
    return {
        "trust": trust(summary),
        "title": str(summary.get("title") or "Positive-unlabeled report"),
        "created": date(summary["created"]) if summary.get("created") else "",
        "data": _data(summary.get("data") or {}),
        "method": _method(summary.get("method") or {}),
        "figures": _figures(metrics),
        "level": level(metrics.get("level")),
        "verdict": [sentence for sentence in (_quality(summary), _bias(summary), _prior(summary)) if sentence],
        "caveat": _caveat(summary) if metrics.get("values") else "",
        "trivial": str(metrics.get("trivial") or ""),
    }


def _data(data: Mapping[str, Any]) -> str:
    kinds = {"labeled positive": "n_labeled", "labeled negative": "n_negative", "unlabeled": "n_unlabeled"}
    parts = [f"{count(data[key])} {kind}" for kind, key in kinds.items() if data.get(key)]
    if not parts:
        return ""
    source = f" from {data['source']}" if data.get("source") else ""
    case_control = data.get("scenario") == "case_control"
    beside = " Labeled rows were collected beside the unlabeled sample." if case_control else ""
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"{count(data.get('n_rows'))} rows{source}: {listed}.{beside}"


def _method(method: Mapping[str, Any]) -> str:
    name = method.get("display") or method.get("name")
    if not name:
        return ""
    model = str(method.get("model") or "")
    model = f" ({model})" if model and model not in str(name) else ""
    took = f", in {duration(method['seconds'])}" if finite(method.get("seconds")) is not None else ""
    return f"Learnt with {name}{model}{took}."


def _figures(metrics: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    values = metrics.get("values") or {}
    return [(METRICS[name], *metric(name, values[name])) for name in FIGURES if values.get(name)]


def _quality(summary: Mapping[str, Any]) -> str:
    values = (summary.get("metrics") or {}).get("values") or {}
    precision, recall = ((values.get(name) or {}).get("value") for name in ("precision", "recall"))
    if finite(precision) is None or finite(recall) is None:
        return ""
    threshold = finite((summary.get("threshold") or {}).get("value"))
    where = "" if threshold is None else f" at its threshold of {number(threshold)}"
    return (
        f"By estimate, the model finds {share(recall)} of the positives{where}, "
        f"and {share(precision)} of the rows it flags are positive."
    )


def _bias(summary: Mapping[str, Any]) -> str:
    scar = summary.get("scar")
    if not scar:
        return ""
    if scar.get("or_fewer"):
        return "The labels are not a fair sample of the positives, or there are fewer than estimated."
    if scar.get("rejected"):
        return "The labels are not a fair sample of the positives."
    return "Nothing shows that the labels are an unfair sample of the positives."


def _prior(summary: Mapping[str, Any]) -> str:
    prior = summary.get("prior") or {}
    if finite(prior.get("value")) is None or (summary.get("metrics") or {}).get("values"):
        return ""
    ends = "" if prior.get("low") == prior.get("high") else f" ({interval(prior.get('low'), prior.get('high'), share)})"
    return f"About {share(prior['value'])} of all rows are positive{ends}."


def _caveat(summary: Mapping[str, Any]) -> str:
    if (summary.get("data") or {}).get("n_negative"):
        return "An estimate: the classes of the unlabeled rows are not known, so errors cannot simply be counted."
    return "An estimate without negatives: no row is known to be negative, so errors cannot simply be counted."
