"""Hyper-parameter search without negatives: Optuna proposes, held-out rows judge by a criterion of PU data.

All trials are judged on the same rows by the same weights, which come from one *reference* propensity. A trial never
judges itself with an ê of its own: it would win by an ê that flatters it. As everywhere, randomness is a function of
the seed and the position (here: the number of finished trials), so a search that was interrupted proposes what the
uninterrupted one would have proposed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing
from torch import Tensor

from pue.basis import settle_prior
from pue.core.criteria import CRITERIA
from pue.core.data import PUData, Scenario, possible_prior, select
from pue.core.folds import row_hash
from pue.core.inputs import as_problem, as_propensity, to_numpy
from pue.core.randomness import derive
from pue.core.weights import RowWeights
from pue.errors import CheckpointMismatch, InvalidInput, TrainingDiverged, lookup, require
from pue.estimators.classifier import PUClassifier
from pue.methods import pu_weights
from pue.propensity import PROPENSITIES, PropensityEstimator, clip_propensity, fit_estimator
from pue.training.feeds import restrict, split_rows
from pue.training.progress import step_progress

if TYPE_CHECKING:  # half a second, which only a search should pay
    import optuna

Reference = str | PropensityEstimator | ArrayLike | None


@dataclass(frozen=True, eq=False)
class SearchResult:
    """What a search found."""

    best_params: dict[str, Any]
    best_value: float
    """The criterion of the best trial; as the largest of many it is too good. Use fresh data for an honest one."""
    classifier: PUClassifier
    """With the best parameters, not fitted: `result.classifier.fit(X, s)` trains on all rows."""
    study: optuna.Study
    """All trials. One that diverged is "pruned" there, with its error as attribute, and the sampler keeps away."""
    held_out: NDArray[np.int64]
    """The rows that judged."""
    weights: RowWeights
    """Their reference weights."""


def search(
    make: Callable[[optuna.Trial], PUClassifier],
    X: Any,
    s: Any = None,
    *,
    n_trials: int,
    criterion: str = "pa",
    reference: Reference = "auto",
    prior: float | Literal["estimate"] = "estimate",
    scenario: str = "single_sample",
    validation: float = 0.2,
    storage: str | Path | None = None,
    name: str = "pue",
    seed: int = 0,
    progress: bool | None = None,
) -> SearchResult:
    """Search the parameters with which `make(trial)` gives the classifier with the highest held-out criterion.

    Parameters
    ----------
    make : function of an `optuna.Trial`
        Returns a new `PUClassifier`. One without a `random_state` gets `seed`, the same in all trials.
    n_trials : int
        Finished trials in the study, those of earlier calls included: the same call again continues an interrupted
        search, and does nothing more when it is complete.
    criterion : str
        A name in `pue.core.criteria.CRITERIA`.
    reference : "auto", a name in `pue.PROPENSITIES`, an estimator, an array, or None
        Propensities of the held-out labeled rows: fitted once, on the training rows; known, for the labeled or for all
        rows (trials with `propensity="known"` get them too); None: all alike (SCAR).
    prior, scenario
        As in `PUClassifier`, for the criterion. The classifiers must have the same scenario; their prior is their own.
    validation : float
        Share of the rows that judge, copies of a row together. They are in no trial's training.
    storage : None or path
        An SQLite file (or a database URL) for the study called `name`, for one process at a time; None: in memory.
    progress : None or bool
        None: a bar on a terminal, else silence. True: also elsewhere. False: never.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(400) < 0.4
    >>> X = rng.normal(size=(400, 2)) + 2 * y[:, None]
    >>> s = (y & (rng.random(400) < 0.5)).astype(int)
    >>> def make(trial):
    ...     lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    ...     return PUClassifier(prior=0.4, lr=lr, backbone="linear", epochs=20)
    >>> result = search(make, X, s, prior=0.4, reference=None, n_trials=3)
    >>> result.best_value == max(trial.value for trial in result.study.trials) > 0.75
    True
    >>> result.classifier.fit(X, s).predict(X).shape
    (400,)
    """
    if n_trials < 1:
        raise InvalidInput(f"n_trials must be at least 1; got {n_trials}.")
    require("search")
    exam = _Exam.of(X, s, criterion, reference, prior, scenario, validation, seed)
    with _quiet_optuna():
        study = _open_study(storage, name, exam.fingerprint)
        _run_trials(study, make, exam, n_trials, progress)
        return _result(study, make, exam)


@dataclass(frozen=True, eq=False)
class _Exam:
    """The same for all trials: rows to train on, rows to be judged by, their weights, and the criterion."""

    X: Any
    labels: NDArray[Any]
    known: Tensor | None
    rest: NDArray[np.int64]
    held_out: NDArray[np.int64]
    weights: RowWeights
    criterion: str
    scenario: Scenario
    seed: int
    fingerprint: str

    @classmethod
    def of(
        cls, X: Any, s: Any, criterion: str, reference: Any, prior: Any, scenario: str, validation: float, seed: int
    ) -> _Exam:
        lookup("criterion", criterion, CRITERIA)
        if not 0 < validation <= 0.5:
            raise InvalidInput(f"validation must lie in (0, 0.5]: some rows must judge; got {validation}.")
        data = as_problem(X, s, scenario)
        X, labels = (data.x, data.labels.numpy()) if isinstance(X, PUData) else (to_numpy(X), data.labels.numpy())
        estimator = _estimator(reference)
        known = None if estimator is not None or reference is None else as_propensity(reference, labels)
        of_labeled = None if known is None else known[data.labeled]
        rest, held_out = split_rows(data, validation, seed)
        assert held_out is not None  # the share is above zero
        weights = _reference_weights(data, rest, held_out, estimator, of_labeled, prior, seed)
        digest = hashlib.sha256(json.dumps([criterion, data.scenario, validation, seed]).encode())
        for values in (row_hash(data.x), data.labels.numpy(), weights.positive.numpy(), weights.negative.numpy()):
            digest.update(np.ascontiguousarray(values).tobytes())
        return cls(
            X,
            labels,
            known,
            rest.numpy(),
            held_out.numpy(),
            weights,
            criterion,
            data.scenario,
            seed,
            digest.hexdigest(),
        )

    def grade(self, classifier: PUClassifier) -> float:
        """The criterion of a classifier that is fitted here, on the training rows alone."""
        if Scenario.parse(classifier.scenario) is not self.scenario:
            raise InvalidInput(
                f"the classifier has scenario={str(classifier.scenario)!r}, the search {self.scenario.value!r}. Pass "
                "the same scenario to both."
            )
        if classifier.propensity == "known" and self.known is None:
            raise InvalidInput('propensity="known" needs the values: search(…, reference=e).')
        known = self.known[self.rest] if self.known is not None and classifier.propensity == "known" else None
        if classifier.random_state is None:  # the same for all, so that luck decides less
            classifier.set_params(random_state=self.seed)
        if classifier.progress is None:  # one bar is enough
            classifier.set_params(progress=False)
        classifier.fit(_safe_indexing(self.X, self.rest), self.labels[self.rest], propensity=known)
        scores = torch.from_numpy(classifier.decision_function(_safe_indexing(self.X, self.held_out)))
        if not bool(torch.isfinite(scores).all()):
            raise TrainingDiverged("the scores of held-out rows are not finite. Try a smaller learning rate.")
        return CRITERIA[self.criterion](scores, self.weights)


def _estimator(reference: Any) -> PropensityEstimator | None:
    if isinstance(reference, str):
        return lookup("reference", reference, PROPENSITIES)
    return reference if isinstance(reference, PropensityEstimator) else None


def _reference_weights(
    data: PUData,
    rest: Tensor,
    held_out: Tensor,
    estimator: PropensityEstimator | None,
    known: Tensor | None,
    prior: float | str,
    seed: int,
) -> RowWeights:
    """The weights of the held-out rows; what has to be estimated is estimated on the others, and so out of sample."""
    others = data.take(rest)
    found = settle_prior(others if isinstance(prior, str) else data, prior, seed=seed)
    value = possible_prior(found.value, data.labels, data.scenario)
    e = known
    if estimator is not None:
        e = fit_estimator(estimator, others, prior=found.value, seed=derive(seed, 1))(select(data.x, data.labeled))
    if e is not None:
        e, _ = clip_propensity(e)
    return restrict(pu_weights(data, value, e), data.labels, held_out)


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    """Optuna's log, a line a trial, is switched off and given back as it was."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _open_study(storage: str | Path | None, name: str, fingerprint: str) -> optuna.Study:
    """A new study or, in a storage, the one of that name, if it was made for the same data and settings."""
    import optuna
    from sqlalchemy.exc import SQLAlchemyError

    url = None if storage is None else str(storage)
    if url is not None and "://" not in url:
        Path(url).parent.mkdir(parents=True, exist_ok=True)
        url = f"sqlite:///{url}"
    try:
        study = optuna.create_study(storage=url, study_name=name, direction="maximize", load_if_exists=True)
    except SQLAlchemyError as error:
        raise CheckpointMismatch(
            f"{storage} cannot be opened as a study ({error}). Delete it, or use another storage."
        ) from error
    found = study.user_attrs.get("fingerprint")
    if found is None and not study.get_trials(deepcopy=False):
        study.set_user_attr("fingerprint", fingerprint)
    elif found != fingerprint:
        raise CheckpointMismatch(
            f"the study {name!r} in {storage} was made for other data or settings (features, labels, criterion, "
            "reference, prior, scenario, validation or seed): its values cannot be compared. Use another name or "
            "storage, or delete it."
        )
    return study


def _run_trials(
    study: optuna.Study, make: Callable[[optuna.Trial], PUClassifier], exam: _Exam, n_trials: int, progress: bool | None
) -> None:
    from optuna.samplers import TPESampler
    from optuna.trial import TrialState

    done = len(_finished(study))
    with step_progress(n_trials, "trial", done=done, show=progress, title="search") as move:
        while done < n_trials:
            # A new sampler for every trial: its proposals depend on the finished trials and the seed, not on whether
            # this process or an earlier one ran them. Trials that were killed are still "running" and do not count.
            study.sampler = TPESampler(seed=derive(exam.seed, done) % 2**32, constant_liar=False)
            trial = study.ask()
            try:
                value = exam.grade(make(trial))
            except TrainingDiverged as error:
                trial.set_user_attr("diverged", str(error))
                study.tell(trial, state=TrialState.PRUNED)
                status = "diverged"
            except BaseException:
                study.tell(trial, state=TrialState.FAIL)
                raise
            else:
                study.tell(trial, value)
                status = f"{exam.criterion} {value:.4f}  best {study.best_value:.4f}"
            done += 1
            move(done, status=status)


def _finished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
    from optuna.trial import TrialState

    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))


def _result(study: optuna.Study, make: Callable[[Any], PUClassifier], exam: _Exam) -> SearchResult:
    from optuna.trial import FixedTrial

    finished = _finished(study)
    if all(trial.value is None for trial in finished):
        raise TrainingDiverged(
            f"all {len(finished)} trials diverged. Search smaller learning rates. The last one said: "
            f"{finished[-1].user_attrs.get('diverged')}"
        )
    classifier = make(FixedTrial(study.best_params))
    return SearchResult(study.best_params, study.best_value, classifier, study, exam.held_out, exam.weights)
