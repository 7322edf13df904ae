"""What every PU classifier of `pue` shares: reading inputs, prior, propensities, and what follows from scores.

A subclass has `prior`, `propensity`, `scenario`, `propensity_floor`, `propensity_trim` and `random_state` among its
parameters, and `_scores` that decide at zero.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor

from pue.conversion import as_features, as_label_array, as_propensity, as_pu_data, to_numpy
from pue.data import Features, PUData, Scenario, labeled_share, require_prior, select
from pue.decisions import decide
from pue.errors import InvalidInput, PueWarning, UnknownName
from pue.losses import zero_one
from pue.methods import pu_weights
from pue.priors import BIASED_SAFE, FEWEST, PRIORS, PriorEstimate, elkan_noto, estimate_prior
from pue.propensity import PropensityEstimator, PropensityModel, PropensityReport, examine, find_propensity, process
from pue.randomness import derive
from pue.risks import upu

WIDE = 0.15
"""An interval of the prior wider than this is warned about: so large a share of the rows changes class inside it."""


class PUEstimator(ClassifierMixin, BaseEstimator):
    """Labels in, prior and propensities out; scores in, decisions and estimated accuracy out."""

    prior: float | str
    propensity: str | PropensityEstimator | None
    scenario: str
    propensity_floor: float
    propensity_trim: bool
    random_state: int | np.random.RandomState | None
    prior_: float

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _scores(self, x: Features) -> Tensor:
        """Scores of checked rows; they decide at zero."""

    def decision_function(self, X: Any) -> NDArray[np.floating[Any]]:
        """Scores g(x); positive where the row is called positive."""
        check_is_fitted(self)
        scores: NDArray[np.floating[Any]] = self._scores(self._features(X, reset=False)).numpy()
        return scores

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 where the score is at least zero, else 0."""
        labels: NDArray[np.int64] = decide(torch.from_numpy(self.decision_function(X))).numpy()
        return labels

    def predict_propensity(self, X: Any) -> NDArray[np.float64] | None:
        """ê(x) of new rows, clipped; None where labels were taken as unbiased or propensities were known."""
        check_is_fitted(self)
        if self._propensity_model is None:
            return None
        found, _ = process(self._propensity_model(self._features(X, reset=False)), floor=self.propensity_floor)
        values: NDArray[np.float64] = found.numpy()
        return values

    def score(self, X: Any, y: Any, *, propensity: Any = None, sample_weight: Any = None) -> float:
        """Accuracy as estimated from PU labels: one minus the unbiased PU risk of the 0-1 loss.

        Higher is better, and it means the same in `GridSearchCV`, where true classes are unknown. It can leave [0, 1]
        on small samples. Labeled rows are weighted by `propensity` where given, else by the fitted propensity model,
        else alike. If you do have the true classes, use `sklearn.metrics.accuracy_score(truth, clf.predict(X))`.
        """
        check_is_fitted(self)
        data, given = self._read(X, y, propensity, sample_weight, reset=False)
        known = None if given is None else given[data.labeled]
        if known is None and self._propensity_model is not None:
            known, _ = process(self._propensity_model(select(data.x, data.labeled)), floor=self.propensity_floor)
        prior = self.prior_
        if data.scenario is Scenario.SINGLE_SAMPLE:  # a small fold may by chance hold more labeled rows than π allows
            prior = max(prior, labeled_share(data.labels, data.sample_weight))
        weights = pu_weights(data, prior, known)
        return 1.0 - float(upu(zero_one)(self._scores(data.x).double(), weights))

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to a folder, without pickle; `pue.load` reads it again.

        A model at `path` is replaced as a whole or not at all. `checkpoint_dir` and `progress` belong to this machine
        and are not kept, nor is a `random_state` that is no number.
        """
        from pue.persistence import save

        check_is_fitted(self)
        save(self, path)

    def _read(
        self, X: Any, y: Any, propensity: Any, sample_weight: Any, negative_propensity: Any = None, *, reset: bool
    ) -> tuple[PUData, Tensor | None]:
        """Everything that came in, checked; the second value are known propensities of rows (NaN where unknown)."""
        x = self._features(X, reset=reset)
        labels = as_label_array(y, x.shape[0])
        known = None
        if propensity is not None:
            if self.propensity not in (None, "known"):
                raise InvalidInput(
                    f"propensity={self.propensity!r} estimates propensities, but known ones were passed too. Use "
                    'propensity="known" or do not pass them.'
                )
            known = as_propensity(propensity, labels)
        if negative_propensity is not None:
            if known is None:
                raise InvalidInput("negative_propensity goes with propensity: pass both.")
            known = torch.where(torch.from_numpy(labels == -1), as_propensity(negative_propensity, -labels), known)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        return as_pu_data(x, labels, self.scenario, sample_weight, known)

    def _features(self, X: Any, *, reset: bool) -> Features:
        checked = validate_data(
            self, to_numpy(X), reset=reset, accept_sparse="csr", allow_nd=True, ensure_all_finite=False, dtype="numeric"
        )
        return as_features(checked, getattr(self, "feature_names_in_", None))

    def _prior(self, data: PUData, seed: int) -> float:
        self.prior_estimate_: PriorEstimate | None = None
        if isinstance(self.prior, str):
            if self.prior != "estimate" and self.prior not in PRIORS:
                raise UnknownName("prior", self.prior, ["estimate", *PRIORS])
            if self.prior == "estimate" and min(data.n_labeled, int(data.unlabeled.sum())) < FEWEST:
                return elkan_noto(data)  # which warns where it cannot hold rows out; an interval would mean nothing
            method = BIASED_SAFE if self.prior == "estimate" else self.prior
            found = estimate_prior(data, method, seed=derive(seed, 2))
            self.prior_estimate_ = found
            if found.high - found.low > WIDE:
                warnings.warn(
                    f"the estimated prior may lie anywhere between {found.low:.2f} and {found.high:.2f}; between the "
                    f"two about {found.high - found.low:.0%} of the rows change their class. Pass the prior if you "
                    "know it, and look at pue.prior_sweep(classifier, X, y).",
                    PueWarning,
                    stacklevel=3,
                )
            return found.value
        prior = float(self.prior)
        require_prior(prior, data.labels, data.scenario, data.sample_weight)
        return prior

    def _propensity(self, data: PUData, known: Tensor | None, seed: int) -> Tensor | None:
        self._propensity_model: PropensityModel | None = None
        self.propensity_: NDArray[np.float64] | None = None
        self.propensity_report_: PropensityReport | None = None
        if known is not None:
            mass = None if data.sample_weight is None else data.sample_weight[data.labeled]
            e, report = process(
                known, floor=self.propensity_floor, trim=self.propensity_trim, mass=mass, source="known"
            )
        elif self.propensity is None:
            return None
        elif self.propensity == "known":
            raise InvalidInput('propensity="known" needs the values: fit(X, y, propensity=e).')
        else:
            estimator = find_propensity(self.propensity)
            model = estimator.fit(data, prior=self.prior_, seed=derive(seed, 1))
            self._propensity_model = model
            e, report = examine(
                model, data, estimator=estimator, floor=self.propensity_floor, trim=self.propensity_trim
            )
        if report.alarm and known is None:
            warnings.warn(report.alarm, PueWarning, stacklevel=3)
        self.propensity_, self.propensity_report_ = e.numpy(), report
        return e
