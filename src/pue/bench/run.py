"""A spec → its record: load, hide labels, estimate propensities, train, evaluate. One thread."""

from __future__ import annotations

import platform
import warnings
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pue.basis import settle_prior
from pue.bench.cost import Clock, CountedBackbone, forget_peak_memory, peak_memory, warm_up
from pue.bench.features import seen_by_encoder
from pue.bench.hidden import Hidden, hide, load
from pue.bench.options import make_method
from pue.bench.propensities import propensities
from pue.bench.record import Cost, DataId, Propensities, Record
from pue.bench.spec import SUPERVISED, Spec
from pue.bench.store import Store
from pue.bench.suites import row_name
from pue.core.machine import one_thread
from pue.estimators.classifier import PUClassifier
from pue.judging import evaluate
from pue.training import EpochRecord


def run(spec: Spec, data: Path | None = None, store: Store | None = None, *, wait: bool = True) -> Record:
    """The record of a run, computed here and now and not yet written; `store` only shares estimated propensities.

    `wait=False`: `Busy` instead of waiting for propensities that another process is estimating.
    """
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # in every run alike, not only in the first of a process
        hidden, prior, estimate = prepare(spec, data, store, wait=wait)
        split = hidden.split
        warm_up()
        forget_peak_memory()
        backbone = CountedBackbone(spec.settings.backbone)
        with Clock.running() as clock:
            scores, history = _fit(spec, hidden, prior, estimate, backbone)
        metrics = evaluate(split.test_y, scores)
    said = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    return Record(
        key=spec.key,
        spec=spec.to_dict(),
        row=row_name(spec),
        metrics=metrics,
        history=tuple(asdict(epoch) for epoch in history),
        propensity=None if estimate is None else estimate.summary,
        prior=prior,
        n_labeled=hidden.data.n_labeled,
        n_unlabeled=int(hidden.data.unlabeled.sum()),
        data=DataId(split.name, split.checksum),
        warnings=tuple(dict.fromkeys(said)),
        versions=versions(),
        cost=Cost(clock.wall, clock.cpu, backbone.flops(), peak_memory()),
        features=split.features,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def prepare(
    spec: Spec, data: Path | None, store: Store | None, *, wait: bool = True
) -> tuple[Hidden, float, Propensities | None]:
    """All that comes before the training: the data with their labels hidden, the prior, the propensities."""
    split = load(spec.dataset, data, spec.settings.image_size, spec.settings.rows, spec.settings.disjoint)
    if spec.settings.features is not None:
        split = seen_by_encoder(spec.settings.features, split)
    hidden = hide(split, spec.labels, spec.seed)
    prior = (
        float(split.train_y.double().mean()) if spec.prior == "data" else settle_prior(hidden.data, spec.prior).value
    )
    return hidden, prior, propensities(spec, hidden, prior, store, wait=wait)


def _fit(
    spec: Spec, hidden: Hidden, prior: float, estimate: Propensities | None, backbone: CountedBackbone
) -> tuple[Tensor, list[EpochRecord]]:
    """Scores of the test set and the history. Propensities are not part of it: their cost stands with them."""
    classifier = PUClassifier(
        make_method(spec.method, dict(spec.method_options)),
        prior=prior,
        scenario="single_sample" if spec.method == SUPERVISED else hidden.data.scenario.value,
        backbone=backbone,
        random_state=spec.seed,
        progress=False,
        **spec.settings.classifier,
    )
    known: dict[str, Any] = {}
    if estimate is not None:
        known["propensity"] = torch.tensor(estimate.values, dtype=torch.float64)
        if estimate.negative_values is not None:
            known["negative_propensity"] = torch.tensor(estimate.negative_values, dtype=torch.float64)
    if spec.method == SUPERVISED:
        classifier.fit(hidden.split.train_x, hidden.split.train_y)
    else:
        classifier.fit(hidden.data.x, hidden.data.labels, **known)
    return torch.from_numpy(classifier.decision_function(hidden.split.test_x)), classifier.history_


def versions() -> dict[str, str]:
    names = {"pue": "pue", "torch": "torch", "numpy": "numpy", "sklearn": "scikit-learn"}
    return {"python": platform.python_version(), **{ours: version(theirs) for ours, theirs in names.items()}}
