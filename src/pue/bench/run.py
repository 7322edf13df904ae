"""A spec → its record: load, hide labels, estimate propensities, train, evaluate. One thread."""

from __future__ import annotations

import platform
import warnings
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor

from pue.estimators import PUClassifier
from pue.experiments.cost import Clock, CountedBackbone, forget_peak_memory, peak_memory, warm_up
from pue.experiments.labels import Hidden, hide, load
from pue.experiments.propensities import SUMMARY, propensities
from pue.experiments.spec import SCHEMA, SUPERVISED, Spec
from pue.experiments.store import Entry, Record, Store
from pue.experiments.suites import row_name
from pue.experiments.values import make_method
from pue.metrics import evaluate
from pue.threads import one_thread
from pue.training import EpochRecord


def run(spec: Spec, data: Path | None = None, store: Store | None = None, *, wait: bool = True) -> Record:
    """The record of a run, computed here and now and not yet written; `store` only shares estimated propensities.

    `wait=False`: `Busy` instead of waiting for propensities that another process is estimating.
    """
    with one_thread(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # in every run alike, not only in the first of a process
        split = load(spec.dataset, data, spec.settings.image_size, spec.settings.rows)
        hidden = hide(split, spec.labels, spec.seed)
        prior = float(split.train_y.double().mean()) if isinstance(spec.prior, str) else spec.prior
        estimate = propensities(spec, hidden, prior, store, wait=wait)
        warm_up()
        forget_peak_memory()
        backbone = CountedBackbone(spec.settings.backbone)
        with Clock.running() as clock:
            scores, history = _fit(spec, hidden, prior, estimate, backbone)
        metrics = evaluate(split.test_y, scores)
    said = [f"{warning.category.__name__}: {warning.message}" for warning in caught]
    return {
        "schema": SCHEMA,
        "key": spec.key,
        "spec": spec.to_dict(),
        "row": row_name(spec),
        "metrics": metrics.as_dict(),
        "history": [asdict(epoch) for epoch in history],
        "propensity": None if estimate is None else {name: estimate[name] for name in SUMMARY},
        "prior": prior,
        "n_labeled": hidden.data.n_labeled,
        "n_unlabeled": int(hidden.data.unlabeled.sum()),
        "data": {"name": split.name, "checksum": split.checksum},
        "warnings": list(dict.fromkeys(said)),
        "versions": versions(),
        "cost": {
            "wall_seconds": clock.wall,
            "cpu_seconds": clock.cpu,
            "flops": backbone.flops(),
            "peak_memory_bytes": peak_memory(),
        },
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def complete(entry: Entry, spec: Spec, data: Path | None, store: Store, *, wait: bool = True) -> tuple[Record, bool]:
    """The record of a run, from the store or computed and stored; the second value says which (True: computed)."""
    found = entry.valid()
    if found is not None:
        return found, False
    with entry.claim(wait=wait):
        found = entry.valid()  # whoever held the claim before us may have written it
        if found is not None:
            return found, False
        record = run(spec, data, store, wait=wait)
        entry.write(record)
        return record, True


def _fit(
    spec: Spec, hidden: Hidden, prior: float, estimate: Record | None, backbone: CountedBackbone
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
    known = {}
    for ours, theirs in (("values", "propensity"), ("negative_values", "negative_propensity")):
        if estimate is not None and ours in estimate:
            known[theirs] = torch.tensor(estimate[ours], dtype=torch.float64)
    if spec.method == SUPERVISED:
        classifier.fit(hidden.split.train_x, hidden.split.train_y)
    else:
        classifier.fit(hidden.data.x, hidden.data.labels, **known)
    return torch.from_numpy(classifier.decision_function(hidden.split.test_x)), classifier.history_


def versions() -> dict[str, str]:
    names = {"pue": "pue", "torch": "torch", "numpy": "numpy", "sklearn": "scikit-learn"}
    return {"python": platform.python_version(), **{ours: version(theirs) for ours, theirs in names.items()}}
