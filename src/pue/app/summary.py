"""What a fitted model has to say for itself, as plain values: the page, `inspect` and `--json` show this."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pue.app.learn import HeldOutScores
from pue.app.preparation import Preparation
from pue.app.recipe import Recipe
from pue.app.rows import Rows
from pue.app.stream import StreamedRows
from pue.app.threshold import as_unseen
from pue.diagnosis.found import Diagnosis
from pue.judging.curves import reliability, threshold_curve
from pue.judging.estimates import DRAWS, ESTIMATED, EstimatedMetrics, estimate_metrics
from pue.judging.sensitivity import GAMMAS
from pue.judging.worlds import Doubts
from pue.propensity import PropensityReport
from pue.trees import LEARNERS

POINTS = 101
OF_NETWORKS = (
    "batch_size", "batching", "checkpoint_every", "criterion", "device", "dtype", "epochs", "keep", "labeled_rows",
    "lr", "optimizer", "schedule", "validation", "weight_decay",
)  # fmt: skip
"""Settings that say nothing about trees."""


def summarize(
    rows: Rows | StreamedRows,
    recipe: Recipe,
    prepared: Preparation,
    classifier: Any,
    scored: HeldOutScores,
    probabilities: Tensor,
    threshold: float,
    rule: str,
    calibration: str,
    *,
    facts: dict[str, Any],
    seconds: float,
) -> dict[str, Any]:
    """The summary that the page is made from; see `pue.app.page`."""
    given, doubt = _given(rows, prepared, scored), _doubt(prepared, scored)
    at: dict[str, Any] = {"threshold": threshold, "fold": scored.fold, "seed": recipe.seed}
    judged = as_unseen(probabilities, scored.weights, scored.fold, threshold, recipe.threshold, recipe.precision)
    at["deciding"] = judged
    metrics = estimate_metrics(probabilities, scored.labels, gammas=GAMMAS, **given, **doubt, **at)
    plain = estimate_metrics(probabilities, scored.labels, **given, **at)
    thresholds = np.unique([*np.linspace(0, 1, POINTS), threshold])
    drawn: dict[str, Any] = {"worlds": doubts_of(rows, prepared, scored, probabilities), "seed": recipe.seed}
    curve = threshold_curve(judged, scored.weights, thresholds=thresholds, fold=scored.fold, draws=DRAWS, **drawn)
    bounds = [{"gamma": g, "recall": r["recall"], "precision": r["precision"]} for g, r in metrics.bounds.items()]
    bins = [vars(found) for found in reliability(probabilities, scored.weights, **drawn)]
    how = "rows scored by models that had not seen them"
    found: dict[str, Any] = json_safe(
        {
            **diagnosis_summary(rows, prepared.diagnosis, facts, prepared.report),
            "method": {**_method(recipe, prepared, classifier, seconds), "why": str(facts.get("why", ""))},
            "metrics": metrics_summary(metrics, how),
            "scar_metrics": metrics_summary(plain, how) if scored.e is not None else None,
            "bounds": bounds,
            "threshold": {"value": threshold, "rule": rule},
            "curve": _curve(curve),
            "n_score_rows": int((scored.weights.background > 0).sum()),
            "scores": _scores(probabilities, scored.labels),
            "calibration": {"method": calibration, "bins": bins},
            "warnings": [*facts.get("warnings", []), *([] if rows.vectorizer is None else rows.vectorizer.notes)],
        }
    )
    return found


def doubts_of(rows: Rows | StreamedRows, prepared: Preparation, scored: HeldOutScores, probabilities: Tensor) -> Doubts:
    """What is known of the rows held out, and how far it may be off: all numbers of a model come from these worlds."""
    return Doubts(probabilities, scored.labels, **_given(rows, prepared, scored), **_doubt(prepared, scored))


def _given(rows: Rows | StreamedRows, prepared: Preparation, scored: HeldOutScores) -> dict[str, Any]:
    return {
        "prior": prepared.prior.value,
        "scenario": rows.scenario,
        "sample_weight": scored.mass,
        "prior_interval": prepared.prior_interval,
    }


def _doubt(prepared: Preparation, scored: HeldOutScores) -> dict[str, Any]:
    return {"propensity": scored.e, "readings": scored.readings, "hidden": prepared.hidden_bias}


def diagnosis_summary(
    rows: Rows | StreamedRows, d: Diagnosis, facts: dict[str, Any], report: PropensityReport | None = None
) -> dict[str, Any]:
    """The part of the page that needs no model."""
    counts, vectorizer = rows.counts, rows.vectorizer
    kinds = {} if vectorizer is None else vectorizer.columns
    scar = d.scar and {
        **_picked(d.scar, "p_value", "rejected", "statistic"),
        "text": d.verdict,
        "or_fewer": d.or_fewer,
        "null": d.scar.null.tolist(),
    }
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
            **_picked(d.prior, "value", "low", "high", "level", "method", "readings"),
            "assumes": d.prior.assumption,
        },
        "scar": scar,
        "drivers": [{"name": driver.name, "difference": driver.difference} for driver in d.drivers[:10]],
        "propensity": _propensity(d, report),
        "warnings": [],
        "advice": [d.recommendation],
    }


def metrics_summary(m: EstimatedMetrics, how: str) -> dict[str, Any]:
    facts = _picked(m, "n_labeled", "n_population", "assumption", "trivial", "contradiction")
    return {"level": m.level, "how": how, **facts, "values": {name: vars(getattr(m, name)) for name in ESTIMATED}}


def _picked(found: object, *names: str) -> dict[str, Any]:
    return {name: getattr(found, name) for name in names}


def json_safe(value: Any) -> Any:
    """The same as JSON can hold it everywhere: None for infinity and what is no number."""
    if isinstance(value, dict):
        return {key: json_safe(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [json_safe(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _method(recipe: Recipe, prepared: Preparation, classifier: Any, seconds: float) -> dict[str, Any]:
    history = getattr(classifier, "history_", [])
    settings = {
        name: value
        for name, value in classifier.get_params(deep=False).items()
        if isinstance(value, str | int | float | bool) and name not in ("progress", "propensity")
        if name not in OF_NETWORKS or recipe.method not in LEARNERS
    }
    source = "labels taken as unbiased" if prepared.report is None else prepared.report.source or str(recipe.propensity)
    name = recipe.method
    return {
        "name": name,
        "display": f"{name}, weighted by the chance of a label" if prepared.e is not None else name,
        "propensity": source,
        "model": str(getattr(classifier, "backbone", type(classifier).__name__)),
        "settings": settings,
        "seconds": seconds,
        "seed": recipe.seed,
        "history": [{"epoch": h.epoch, "risk": h.risk, "validation": h.validation} for h in _thinned(history, 200)],
    }


def _thinned(items: Sequence[Any], most: int) -> list[Any]:
    return list(items[:: max(1, -(-len(items) // most))])


def _curve(curve: Any) -> list[dict[str, float]]:
    names = ("threshold", "precision", "precision_low", "precision_high", "recall", "recall_low", "recall_high",
             "flagged", "f1")  # fmt: skip
    columns = (curve.thresholds, *curve.precision, *curve.recall, curve.flagged, curve.f1)
    return [dict(zip(names, map(float, point), strict=True)) for point in zip(*columns, strict=True)]


def _scores(probabilities: Tensor, labels: Tensor) -> dict[str, Any]:
    edges = np.linspace(0, 1, 41)
    labeled, unlabeled = (_density(probabilities[labels == kind].numpy(), edges)["density"] for kind in (1, 0))
    return {"edges": edges.tolist(), "labeled": labeled, "unlabeled": unlabeled}


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
        **_picked(report, "mean", "effective_sample_size", "largest_weight", "n_labeled", "n_clipped", "alarm"),
        "labeled": _density(e, edges),
        "unlabeled": _density(unlabeled, edges),
        "weight_curve": [[0.0, 0.0], *([(int(k) + 1) / len(weight), float(shares[k])] for k in points)],
    }


def _density(values: NDArray[np.float64], edges: NDArray[np.float64]) -> dict[str, list[float]]:
    return {"edges": edges.tolist(), "density": np.histogram(values, edges, density=True)[0].tolist()}
