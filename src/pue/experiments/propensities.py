"""Propensities of a run's labeled rows: true, or estimated once and shared by every run that needs the same."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pue.data import PUData
from pue.datasets import LabeledSplit
from pue.experiments.cost import Clock
from pue.experiments.labels import Hidden
from pue.experiments.spec import SCHEMA, Spec
from pue.experiments.store import Record, Store
from pue.experiments.values import make_estimator
from pue.propensity import PropensityReport, examine, negatives_for_positives, process
from pue.randomness import derive

SUMMARY = ("source", "effective_sample_size", "share_distance", "alarm", "seconds", "cpu")
"""What a run's record says about its propensities; the store also keeps their `values`."""


def propensities(spec: Spec, hidden: Hidden, prior: float, store: Store | None, *, wait: bool) -> Record | None:
    """e of the labeled rows and what is worth knowing about them; None where the run uses none."""
    if spec.propensity == "none":
        return None
    floor = spec.settings.propensity_floor or 1e-4
    if spec.propensity == "true":
        e, report = process(hidden.propensity, floor=floor, source="true")
        return _describe(e, report, Clock(), hidden, hidden.negative_propensity)
    if store is None:
        return _estimate(spec, hidden, prior, floor)
    identity = propensity_identity(spec)
    entry = store.propensity(identity)
    found = entry.valid()
    if found is None:
        with entry.claim(wait=wait):
            found = entry.valid()  # whoever held the claim before us may have written it
            if found is None:
                estimate = _estimate(spec, hidden, prior, floor)
                found = {"schema": SCHEMA, "key": entry.key, "spec": identity, **estimate}
                entry.write(found)
    return found


def propensity_identity(spec: Spec) -> dict[str, Any]:
    """All that an estimate depends on: two specs with the same one share it."""
    everything = spec.to_dict()
    kept = {name: everything[name] for name in ("schema", "dataset", "labels", "seed", "prior", "propensity")}
    names = ("image_size", "rows", "propensity_floor")
    settings = {name: value for name, value in everything["settings"].items() if name in names}
    return {**kept, "propensity_options": everything.get("propensity_options", {}), "settings": settings}


def share_distance(weight: Tensor, classes: Tensor, split: LabeledSplit) -> float:
    """Total variation between the shares of the classes in the weights and among the positives of the training set."""
    ours = torch.stack([weight[classes == name].sum() for name in split.positive]) / weight.sum()
    true = torch.stack([(split.train_classes == name).sum() for name in split.positive]).double()
    return 0.5 * float((ours - true / true.sum()).abs().sum())


def _estimate(spec: Spec, hidden: Hidden, prior: float, floor: float) -> Record:
    data: PUData = hidden.data
    estimator = make_estimator(spec.propensity, dict(spec.propensity_options))
    with Clock.running() as clock:
        model = estimator.fit(data, prior=prior, seed=derive(spec.seed, 1))
        e, report = examine(model, data, estimator=estimator, floor=floor)
        negative_e = None
        if hidden.negative_propensity is not None:
            seen = negatives_for_positives(data)
            model = estimator.fit(seen, prior=1 - prior, seed=derive(spec.seed, 3))
            negative_e, _ = examine(model, seen, estimator=estimator, floor=floor)
    return _describe(e, report, clock, hidden, negative_e)


def _describe(e: Tensor, report: PropensityReport, clock: Clock, hidden: Hidden, negative_e: Tensor | None) -> Record:
    described = {
        "source": report.source,
        "effective_sample_size": report.effective_sample_size,
        "share_distance": share_distance(1 / e, hidden.classes, hidden.split),
        "alarm": report.alarm,
        "seconds": clock.wall,
        "cpu": clock.cpu,
        "values": e.tolist(),
    }
    return described if negative_e is None else {**described, "negative_values": negative_e.tolist()}
