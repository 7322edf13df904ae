"""Other PU libraries, as `benchmarks/peers` uses them; columns are standardized, for networks and regressions need it.

A peer that is not installed is left out, with the reason. The true prior is given to whoever takes one.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import torch
from answers import Answer, Method
from baselines import boosting
from problems import Problem
from sklearn.preprocessing import StandardScaler
from torch import nn

Data = tuple[Any, Any, Any]


def pulearn_elkan_noto(problem: Problem) -> Answer:
    """Around boosted trees."""
    from pulearn import ElkanotoPuClassifier

    model = ElkanotoPuClassifier(boosting(problem.seed), random_state=problem.seed)
    return _probabilities(model, _data(problem))


def pulearn_bagging(problem: Problem) -> Answer:
    """Twenty trees, as many unlabeled rows in a bag as there are labeled ones."""
    from pulearn import BaggingPuClassifier

    model = BaggingPuClassifier(n_estimators=20, max_samples=int(problem.train.s.sum()), random_state=problem.seed)
    return _probabilities(model, _data(problem))


def toolbox_nnpu(problem: Problem) -> Answer:
    """Four hidden layers of 300, ten epochs, batches of 256; it wants labeled rows beside the sample."""
    from pu_toolbox.estimators.risk.nnpu import NonNegativePUClassifier

    x, s, new = _case_control(_data(problem))
    torch.manual_seed(problem.seed)
    model = NonNegativePUClassifier(
        _layers(x.shape[1]), class_prior=problem.prior, batch_size=256, max_epochs=10, random_state=problem.seed
    )
    return _decisions(model.fit(x, s), new)


def toolbox_elkan_noto(problem: Problem) -> Answer:
    from pu_toolbox.estimators.classic.elkan_noto import ElkanNotoClassifier

    x, s, new = _data(problem)
    return _decisions(ElkanNotoClassifier(random_state=problem.seed).fit(x, s), new)


def toolbox_pusb(problem: Problem) -> Answer:
    """Made for labels that prefer sure positives."""
    from pu_toolbox.estimators.bias_aware.pusb import PUSBClassifier

    x, s, new = _data(problem)
    return _decisions(PUSBClassifier().fit(x, s, class_prior=problem.prior), new)


def toolbox_lbe(problem: Problem) -> Answer:
    """Made for biased labels: class and label frequency, both logistic."""
    from pu_toolbox.estimators.bias_aware.lbe import LBEClassifier

    x, s, new = _data(problem)
    return _decisions(LBEClassifier().fit(x, s, class_prior=problem.prior), new)


def _data(problem: Problem) -> Data:
    scaler = StandardScaler().fit(problem.train.x)
    return scaler.transform(problem.train.x), problem.train.s.astype(np.int64), scaler.transform(problem.test.x)


def _case_control(data: Data) -> Data:
    x, s, new = data
    both = np.concatenate([x[s == 1], x])
    return both, (np.arange(len(both)) < s.sum()).astype(np.int64), new


def _layers(columns: int, width: int = 300) -> nn.Module:
    hidden = [layer for _ in range(3) for layer in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(nn.Linear(columns, width), nn.ReLU(), *hidden, nn.Linear(width, 1))


def _probabilities(model: Any, data: Data) -> Answer:
    x, s, new = data
    model.fit(x, s)
    return Answer(np.asarray(model.predict_proba(new)[:, 1], np.float64), np.asarray(model.predict(new)) == 1)


def _decisions(model: Any, new: Any) -> Answer:
    return Answer(np.asarray(model.decision_function(new), np.float64).ravel(), np.asarray(model.predict(new)) == 1)


PEERS: dict[str, Method] = {
    "pulearn/elkan-noto": pulearn_elkan_noto,
    "pulearn/bagging": pulearn_bagging,
    "pu-toolbox/nnpu": toolbox_nnpu,
    "pu-toolbox/elkan-noto": toolbox_elkan_noto,
    "pu-toolbox/pusb": toolbox_pusb,
    "pu-toolbox/lbe": toolbox_lbe,
}
MODULES = {"pulearn": "pulearn", "pu-toolbox": "pu_toolbox"}


def missing() -> dict[str, str]:
    """Libraries whose rows are left out → why."""
    reasons = {}
    for library, module in MODULES.items():
        try:
            importlib.import_module(module)
        except ImportError as error:
            reasons[library] = str(error)
    return reasons
