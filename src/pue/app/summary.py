"""What a fitted model has to say for itself, as plain values: the page, `inspect` and `--json` show this."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pue.diagnostics import Diagnosis
from pue.metrics.curves import reliability, threshold_curve
from pue.metrics.estimates import NAMES, EstimatedMetrics, estimate_metrics
from pue.model.classifiers import resolved
from pue.model.rows import Rows
from pue.model.stream import StreamedRows
from pue.propensity import PropensityReport

if TYPE_CHECKING:
    from pue.model.basis import Basis
    from pue.model.fit import Scored
    from pue.model.recipe import Recipe

GAMMAS = (1.0, 1.25, 1.5, 2.0)
POINTS = 101


def summarize(
    rows: Rows | StreamedRows,
    recipe: Recipe,
    basis: Basis,
    classifier: Any,
    scored: Scored,
    probabilities: Tensor,
    threshold: float,
    rule: str,
    calibration: str,
    *,
    facts: dict[str, Any],
    seconds: float,
) -> dict[str, Any]:
    """The summary that the page is made from; see `pue.report.page`."""
    given: dict[str, Any] = {
        "prior": basis.prior.value,
        "scenario": rows.scenario,
        "sample_weight": scored.mass,
        "threshold": threshold,
        "seed": recipe.seed,
        "prior_interval": basis.prior_interval,
    }
    metrics = estimate_metrics(probabilities, scored.labels, propensity=scored.e, gammas=GAMMAS, **given)
    plain = estimate_metrics(probabilities, scored.labels, **given)
    thresholds = np.unique([*np.linspace(0, 1, POINTS), threshold])
    curve = threshold_curve(probabilities, scored.weights, thresholds=thresholds, seed=recipe.seed)
    n_population = int((scored.weights.background > 0).sum())
    how = "rows scored by models that had not seen them"
    found: dict[str, Any] = finite(
        {
            **diagnosis_summary(rows, basis.diagnosis, facts, basis.report),
            "method": _method(recipe, basis, classifier, seconds),
            "metrics": metrics_summary(metrics, how),
            "scar_metrics": metrics_summary(plain, how) if scored.e is not None else None,
            "bounds": [
                {"gamma": gamma, "recall": list(ranges["recall"]), "precision": list(ranges["precision"])}
                for gamma, ranges in metrics.bounds.items()
            ],
            "threshold": {"value": threshold, "rule": rule},
            "curve": _curve(curve),
            "n_score_rows": n_population,
            "scores": _scores(probabilities, scored.labels, scored.weights.background),
            "calibration": {
                "method": calibration,
                "bins": [vars(found) for found in reliability(probabilities, scored.weights, seed=recipe.seed)],
            },
            "warnings": [*facts.get("warnings", []), *_notes(rows)],
            "advice": [basis.diagnosis.recommendation],
        }
    )
    return found


def diagnosis_summary(
    rows: Rows | StreamedRows, d: Diagnosis, facts: dict[str, Any], report: PropensityReport | None = None
) -> dict[str, Any]:
    """The part of the page that needs no model."""
    counts, vectorizer = rows.counts, rows.vectorizer
    kinds = {} if vectorizer is None else vectorizer.columns
    return {
        "title": str(facts.get("title", "PU model")),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": version("pue"),
        "data": {
            "source": str(facts.get("source", "")),
            "n_rows": sum(counts.values()),
            "n_labeled": counts[1],
            "n_negative": counts[-1],
            "n_unlabeled": counts[0],
            "columns": [{"name": name, "kind": kind} for name, kind in kinds.items()],
            "dropped": [] if vectorizer is None else [{"name": n, "reason": r} for n, r in vectorizer.dropped.items()],
            "label": str(facts.get("label", "")),
            "id": facts.get("id"),
            "scenario": rows.scenario.value,
        },
        "prior": {
            "value": d.prior.value,
            "low": d.prior.low,
            "high": d.prior.high,
            "level": d.prior.level,
            "method": d.prior.method,
            "assumes": d.prior.assumption,
        },
        "scar": None
        if d.scar is None
        else {
            "p_value": d.scar.p_value,
            "rejected": d.scar.rejected,
            "statistic": d.scar.statistic,
            "text": str(d.scar),
            "null": d.scar.null.tolist(),
        },
        "drivers": [{"name": driver.name, "difference": driver.difference} for driver in d.drivers[:10]],
        "propensity": _propensity(d, report),
        "warnings": [],
        "advice": [d.recommendation],
    }


def metrics_summary(m: EstimatedMetrics, how: str) -> dict[str, Any]:
    return {
        "level": m.level,
        "how": how,
        "n_labeled": m.n_labeled,
        "n_population": m.n_population,
        "assumption": m.assumption,
        "trivial": m.trivial,
        "values": {name: vars(getattr(m, name)) for name in NAMES},
    }


def finite(value: Any) -> Any:
    """The same with None for numbers that are none, so that it is JSON everywhere."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _method(recipe: Recipe, basis: Basis, classifier: Any, seconds: float) -> dict[str, Any]:
    history = getattr(classifier, "history_", [])
    settings = {
        name: value
        for name, value in classifier.get_params(deep=False).items()
        if isinstance(value, str | int | float | bool) and name not in ("progress", "propensity")
    }
    source = "labels taken as unbiased" if basis.report is None else basis.report.source or str(recipe.propensity)
    name = resolved(recipe.method)
    return {
        "name": name,
        "display": f"{name} with weights by inverse propensity" if basis.e is not None else name,
        "propensity": source,
        "model": str(getattr(classifier, "backbone", type(classifier).__name__)),
        "settings": settings,
        "seconds": seconds,
        "seed": recipe.seed,
        "history": [{"epoch": h.epoch, "risk": h.risk, "validation": h.validation} for h in _thinned(history, 200)],
    }


def _thinned(items: Sequence[Any], most: int) -> list[Any]:
    step = max(1, -(-len(items) // most))
    return list(items[::step])


def _curve(curve: Any) -> list[dict[str, float]]:
    names = ("threshold", "precision", "precision_low", "precision_high", "recall", "recall_low", "recall_high",
             "flagged", "f1")  # fmt: skip
    columns = (curve.thresholds, *curve.precision, *curve.recall, curve.flagged, curve.f1)
    return [dict(zip(names, map(float, point), strict=True)) for point in zip(*columns, strict=True)]


def _scores(probabilities: Tensor, labels: Tensor, background: Tensor) -> dict[str, Any]:
    p, edges = probabilities.numpy(), np.linspace(0, 1, 41)
    return {
        "edges": edges.tolist(),
        "labeled": np.histogram(p[(labels == 1).numpy()], edges, density=True)[0].tolist(),
        "unlabeled": np.histogram(p[(labels == 0).numpy()], edges, density=True)[0].tolist(),
    }


def _propensity(d: Diagnosis, report: PropensityReport | None) -> dict[str, Any] | None:
    report = report or d.report
    if d.propensity is None or report is None or d.unlabeled_propensity is None:
        return None
    e, unlabeled = d.propensity.numpy(), d.unlabeled_propensity.numpy()
    edges = np.linspace(0, float(max(e.max(), unlabeled.max())), 31)
    weight = np.sort(1 / e)[::-1]
    points = np.unique(np.linspace(0, len(weight) - 1, 101).astype(int))
    shares = weight.cumsum() / weight.sum()
    return {
        "source": report.source or "estimated",
        "mean": report.mean,
        "effective_sample_size": report.effective_sample_size,
        "largest_weight": report.largest_weight,
        "n_labeled": report.n_labeled,
        "n_clipped": report.n_clipped,
        "alarm": report.alarm,
        "labeled": _density(e, edges),
        "unlabeled": _density(unlabeled, edges),
        "weight_curve": [[0.0, 0.0], *([(int(k) + 1) / len(weight), float(shares[k])] for k in points)],
    }


def _density(values: NDArray[np.float64], edges: NDArray[np.float64]) -> dict[str, list[float]]:
    return {"edges": edges.tolist(), "density": np.histogram(values, edges, density=True)[0].tolist()}


def _notes(rows: Rows | StreamedRows) -> Iterator[str]:
    yield from () if rows.vectorizer is None else rows.vectorizer.notes
