"""What every PU classifier of `pue` shares: reading inputs, prior, propensities, and what follows from scores.

A subclass has `prior`, `propensity`, `scenario`, `propensity_floor`, `propensity_trim` and `random_state` among its
parameters, and `_scores` that decide at zero.
"""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor

from pue.basis import KNOWN, Basis, Wishes, settle, warn_of_doubts
from pue.core.data import Features, PUData, possible_prior, select
from pue.core.decisions import decide
from pue.core.finite import require_finite_scores
from pue.core.inputs import as_features, as_label_array, as_propensity, as_pu_data, to_numpy
from pue.core.losses import zero_one
from pue.core.risks import upu
from pue.errors import InvalidInput
from pue.estimators.frames import FrameEncoder, encode, fit_encoder, not_numbers
from pue.methods import pu_weights
from pue.priors import PriorEstimate
from pue.propensity import PropensityEstimator, PropensityModel, PropensityReport, clip_propensity

FITTED: dict[str, Any] = {
    "prior_": float,
    "prior_estimate_": PriorEstimate | None,
    "propensity_": NDArray[Any] | None,
    "propensity_report_": PropensityReport | None,
    "_propensity_model": PropensityModel | None,
    "classes_": NDArray[Any],
    "n_features_in_": int,
    "feature_names_in_": NDArray[Any],
    "vectorizer_": FrameEncoder,
}
"""What every fitted estimator has, and a saved one keeps."""


class PUEstimator(ClassifierMixin, BaseEstimator):
    """Labels in, prior and propensities out; scores in, decisions and estimated accuracy out."""

    prior: float | str
    propensity: str | PropensityEstimator | None
    scenario: str
    propensity_floor: float
    propensity_trim: bool
    random_state: int | np.random.RandomState | None
    positive: str | None

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
        found = self._scores(self._features(X, reset=False))
        require_finite_scores(found)
        scores: NDArray[np.floating[Any]] = found.numpy()
        return scores

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 where the score is at least zero, else 0."""
        labels: NDArray[np.int64] = decide(torch.from_numpy(self.decision_function(X))).numpy()
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """Columns P(negative), P(positive): the sigmoid of the score.

        `PUWrapper` calibrates its scores without negatives. Those of `PUClassifier` are estimates of P(y | x) with the
        logistic loss; with a bounded loss such as the sigmoid they rank and decide, but are too extreme to be read as
        probabilities.
        """
        positive = torch.sigmoid(torch.from_numpy(self.decision_function(X))).numpy()
        return np.column_stack([1 - positive, positive])

    def predict_propensity(self, X: Any) -> NDArray[np.float64] | None:
        """ê(x) of new rows, clipped; None where labels were taken as unbiased or propensities were known."""
        check_is_fitted(self)
        if self._propensity_model is None:
            return None
        found, _ = clip_propensity(self._propensity_model(self._features(X, reset=False)), floor=self.propensity_floor)
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
            estimates = self._propensity_model(select(data.x, data.labeled))
            known, _ = clip_propensity(estimates, floor=self.propensity_floor)
        prior = possible_prior(self.prior_, data.labels, data.scenario, data.sample_weight)
        weights = pu_weights(data, prior, known)
        return 1.0 - float(upu(zero_one)(self._scores(data.x).double(), weights))

    def save(self, path: str | Path) -> None:
        """Write the fitted classifier to a folder, without pickle; `pue.load` reads it again.

        A model at `path` is replaced as a whole or not at all. `checkpoint_dir` and `progress` belong to this machine
        and are not kept, nor is a `random_state` that is no number.
        """
        from pue.persistence.model import save

        check_is_fitted(self)
        save(self, path)

    def _read(
        self, X: Any, y: Any, propensity: Any, sample_weight: Any, negative_propensity: Any = None, *, reset: bool
    ) -> tuple[PUData, Tensor | None]:
        """Everything that came in, checked; the second value are known propensities of rows (NaN where unknown)."""
        x = self._features(X, reset=reset)
        labels = as_label_array(y if self.positive is None else self._called_positive(y), x.shape[0])
        known = None
        if propensity is not None:
            if self.propensity not in (None, KNOWN):
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
        if reset:
            self.__dict__.pop("vectorizer_", None)  # of an earlier fit
            why = not_numbers(X, missing=self._takes_missing())
            if why is not None:
                validate_data(self, X, reset=True, skip_check_array=True)
                self.vectorizer_ = fit_encoder(X, why, seed=0)
        encoder: FrameEncoder | None = vars(self).get("vectorizer_")
        if encoder is not None:
            features = encode(encoder, X)
            validate_data(self, X, reset=False, skip_check_array=True)
            return as_features(features, encoder.feature_names)
        checked = validate_data(
            self, to_numpy(X), reset=reset, accept_sparse="csr", allow_nd=True, ensure_all_finite=False, dtype="numeric"
        )
        return as_features(checked, getattr(self, "feature_names_in_", None), missing=self._takes_missing())

    def _called_positive(self, y: Any) -> NDArray[np.int64]:
        """Labels in words: 1 where they are the positive word, else 0."""
        labeled = np.asarray(np.asarray(to_numpy(y), dtype=object) == self.positive, dtype=np.int64)
        if not labeled.any():
            raise InvalidInput(f"no label is {self.positive!r}. Pass positive= the word that marks labeled positives.")
        return labeled

    def _takes_missing(self) -> bool:
        """Whether values may be missing (NaN)."""
        return False

    def _seed(self) -> int:
        try:
            return int(check_random_state(self.random_state).randint(2**31 - 1))
        except ValueError as error:
            raise InvalidInput(
                f"random_state must be a whole number from 0 to 2**32 - 1, a RandomState or None; got "
                f"{self.random_state!r}."
            ) from error

    def _wishes(self, prior: PriorEstimate | None = None) -> Wishes:
        return Wishes(prior or self.prior, self.propensity, self.propensity_floor, self.propensity_trim)

    def _settle(
        self, data: PUData, known: Tensor | None, seed: int, *, prior: PriorEstimate | None = None, stacklevel: int = 3
    ) -> Basis:
        """Prior, propensities and weights, kept as attributes too; `known` are propensities of the labeled rows, and
        `prior` is one that is there already."""
        basis = settle(data, self._wishes(prior), known=known, seed=seed)
        warn_of_doubts(basis, stacklevel=stacklevel)
        found = basis.propensity
        self.prior_: float = basis.prior.value
        self.prior_estimate_: PriorEstimate | None = None if basis.prior.is_given else basis.prior
        self._propensity_model: PropensityModel | None = None if found is None else found.model
        self.propensity_: NDArray[np.float64] | None = None if found is None else found.e.numpy()
        self.propensity_report_: PropensityReport | None = None if found is None else found.report
        return basis
