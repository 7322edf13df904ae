"""Propensities of a run's labeled rows: true, or estimated once and shared by every run that needs the same."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pue.basis import Wishes, settle_negative_propensity, settle_propensities
from pue.bench.cost import Clock
from pue.bench.datasets import LabeledSplit
from pue.bench.hidden import Hidden
from pue.bench.options import make_estimator
from pue.bench.record import Propensities, PropensitySummary
from pue.bench.spec import Spec, digest
from pue.bench.store import Store
from pue.propensity import FLOOR, PropensityReport, clip_propensity


def propensities(spec: Spec, hidden: Hidden, prior: float, store: Store | None, *, wait: bool) -> Propensities | None:
    """e of the labeled rows and what is worth knowing about them; None where the run uses none."""
    if spec.propensity == "none":
        return None
    floor = spec.settings.propensity_floor or FLOOR
    if spec.propensity == "true":
        e, report = clip_propensity(hidden.propensity, floor=floor, source="true")
        return _described(spec, e, report, Clock(), hidden, hidden.negative_propensity)
    if store is None:
        return _estimate(spec, hidden, prior, floor)
    entry = store.propensity(digest(propensity_identity(spec)))
    return entry.complete(lambda: _estimate(spec, hidden, prior, floor), wait=wait)[0]


def propensity_identity(spec: Spec) -> dict[str, Any]:
    """All that an estimate depends on: two specs with the same one share it."""
    everything = spec.to_dict()
    kept = {name: everything[name] for name in ("schema", "dataset", "labels", "seed", "prior", "propensity")}
    names = ("features", "image_size", "rows", "disjoint", "propensity_floor")
    settings = {name: value for name, value in everything["settings"].items() if name in names}
    return {**kept, "propensity_options": everything.get("propensity_options", {}), "settings": settings}


def class_shares(weight: Tensor, classes: Tensor, split: LabeledSplit) -> Tensor:
    """The share of the weight that each positive class has, in the order of `split.positive`."""
    return torch.stack([weight[classes == name].sum() for name in split.positive]) / weight.sum()


def share_distance(weight: Tensor, classes: Tensor, split: LabeledSplit) -> float:
    """Total variation between the shares of the classes in the weights and among the positives of the training set."""
    true = class_shares(split.train_y.double(), split.train_classes, split)
    return 0.5 * float((class_shares(weight, classes, split) - true).abs().sum())


def _estimate(spec: Spec, hidden: Hidden, prior: float, floor: float) -> Propensities:
    estimator = make_estimator(spec.propensity, dict(spec.propensity_options))
    wishes = Wishes(prior, estimator, floor)
    with Clock.running() as clock:
        found = settle_propensities(hidden.data, wishes, prior, seed=spec.seed)
        negative_e = None
        if hidden.negative_propensity is not None:
            negative_e = settle_negative_propensity(hidden.data, wishes, prior, seed=spec.seed)
    assert found is not None  # an estimator was asked for
    return _described(spec, found.e, found.report, clock, hidden, negative_e)


def _described(
    spec: Spec, e: Tensor, report: PropensityReport, clock: Clock, hidden: Hidden, negative_e: Tensor | None
) -> Propensities:
    summary = PropensitySummary(
        source=report.source,
        effective_sample_size=report.effective_sample_size,
        share_distance=share_distance(1 / e, hidden.classes, hidden.split),
        alarm=report.alarm,
        seconds=clock.wall,
        cpu=clock.cpu,
    )
    identity = propensity_identity(spec)
    negative_values = None if negative_e is None else tuple(negative_e.tolist())
    return Propensities(digest(identity), identity, summary, tuple(e.tolist()), negative_values)
