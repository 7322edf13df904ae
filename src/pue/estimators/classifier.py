"""`PUClassifier`: the whole library behind scikit-learn's contract.

X, s ─► PUData ─► prior π ─► propensity ê ─► weights ─► network + risk ─► train ─► scores ─► decisions
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import Tags, check_random_state
from torch import Tensor, nn

from pue.backbones import InputSpec, build
from pue.conversion import as_device, input_spec
from pue.data import Features, PUData
from pue.errors import InvalidInput, UnknownName
from pue.estimation import PUEstimator
from pue.losses import LOSSES, Loss
from pue.methods import Composition, Method, Task, find_method
from pue.propensity import (
    PropensityEstimator,
    examine,
    find_propensity,
    negatives_for_positives,
    process,
)
from pue.randomness import derive
from pue.training import Augmentation, Batching, Checkpointing, RowStream, StreamedTable, Training, score
from pue.training.batches import automatic_size


@dataclass(frozen=True)
class _Plan:
    """The settings of a fit, read: what can be wrong about them is said before anything takes time."""

    method: Method
    training: Training
    loss: Loss | None
    device: torch.device
    checkpointing: Checkpointing | None


class PUClassifier(PUEstimator):
    """A binary classifier from labeled positives and unlabeled rows, corrected for biased labeling.

    Parameters
    ----------
    method : str or method
        A name in `pue.METHODS`: "nnpu", "upu", "distpu", …; or a value with other settings, `PUbN(tau=0.7)`.
    propensity : None, "known", "auto", a name in `pue.PROPENSITIES`, or an estimator
        None: labels are taken to be unbiased (SCAR), unless `fit` is given known propensities. Otherwise the labeled
        rows are weighted by their normalised inverse propensity: nnPU becomes nnPUe, and so on.
    prior : float, "estimate" or a name in `pue.PRIORS`
        π, the share of positives in the population. "estimate" takes the estimator that stands biased labels, and the
        fit warns where its interval is so wide that results would change much inside it.
    backbone : str, nn.Module or callable
        "auto" (a small CNN for images, an MLP for tables), a name in `pue.BACKBONES`, an import path
        "package.module:factory", a module (copied), or a function of an `InputSpec`.
    scenario : "single_sample" or "case_control"
        One table in which some rows are labeled, or labeled rows collected beside an unlabeled sample.
    loss : None, str or callable
        A name in `pue.LOSSES`, or ℓ(margin); None: the method's own.
    epochs : int or "auto"
        "auto": about 1,000 steps, but at least 20 and at most 500 epochs; on more than 256,000 rows about 20,000 steps
        and at least one epoch.
    batch_size : int or "auto"
        "auto": 256; on more than five million rows so many that an epoch takes at most 20,000 steps, up to 4,096. Data
        that fit into one batch are used whole, in order.
    batching, labeled_per_batch, labeled_rows
        See `pue.training.Batching`.
    optimizer, lr, weight_decay, schedule, ema, validation, criterion, patience, keep
        See `pue.training.Training`.
    augmentation : None or Augmentation
        Shift, flip, rotate (images) and mixup.
    propensity_floor : float
        Smallest propensity; smaller estimates are clipped and counted in `propensity_report_`.
    propensity_trim : bool
        Whether labeled rows whose propensity is too small to be worth their variance get no weight (Crump et al. 2009).
    device : str
        "cpu", "cuda" or "mps".
    dtype : "auto", "float32" or "float64"
        "auto" follows X: float64 features are computed in float64, all others in float32.
    checkpoint_dir : None or path
        Where checkpoints lie; a fit with the same data and settings continues from the newest.
    checkpoint_every : int
        Epochs between two checkpoints.
    progress : None or bool
        None: a bar on a terminal, else silence. True: also elsewhere. False: never.
    random_state : None, int or RandomState

    Attributes
    ----------
    classes_ : array([0, 1]); 1 is the positive class.
    prior_ : float, the prior used.
    prior_estimate_ : PriorEstimate or None, the estimate with its interval.
    propensity_ : array or None, the clipped propensities of the labeled rows, in order.
    propensity_report_ : PropensityReport or None.
    network_ : nn.Module, the trained network.
    input_spec_ : InputSpec, what the network was built for.
    threshold_ : float, subtracted from the network's scores: they decide at zero.
    history_ : list of EpochRecord, all stages of the method.

    Examples
    --------
    >>> import numpy as np
    >>> from pue import PUClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(2000) < 0.4
    >>> X = rng.normal(size=(2000, 2)) + 2 * y[:, None]
    >>> e = np.clip(1 / (1 + np.exp(3 - 2 * X[:, 1])), 0.02, 1)  # which positives get a label depends on X
    >>> s = (y & (rng.random(2000) < e)).astype(int)
    >>> plain = PUClassifier(prior=0.4, random_state=0).fit(X, s)
    >>> corrected = PUClassifier(prior=0.4, random_state=0).fit(X, s, propensity=e)
    >>> bool(np.mean(corrected.predict(X) == y) > np.mean(plain.predict(X) == y) > 0.89)
    True
    """

    def __init__(
        self,
        method: str | Method = "nnpu",
        *,
        propensity: str | PropensityEstimator | None = None,
        prior: float | Literal["estimate"] = "estimate",
        backbone: str | nn.Module | Callable[[InputSpec], nn.Module] = "auto",
        scenario: str = "single_sample",
        loss: str | Loss | None = None,
        epochs: int | Literal["auto"] = "auto",
        batch_size: int | Literal["auto"] = "auto",
        batching: Literal["stratified", "joint", "pooled"] = "stratified",
        labeled_per_batch: int | None = None,
        labeled_rows: Literal["weighted", "drawn"] = "weighted",
        optimizer: str = "adam",
        lr: float = 1e-3,
        weight_decay: float = 1e-4,
        schedule: str = "cosine",
        ema: float | None = None,
        augmentation: Augmentation | None = None,
        validation: float = 0.0,
        criterion: str = "risk",
        patience: int | None = None,
        keep: Literal["auto", "best", "last"] = "auto",
        propensity_floor: float = 1e-4,
        propensity_trim: bool = False,
        device: str = "cpu",
        dtype: Literal["auto", "float32", "float64"] = "auto",
        checkpoint_dir: str | Path | None = None,
        checkpoint_every: int = 1,
        progress: bool | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.method = method
        self.propensity = propensity
        self.prior = prior
        self.backbone = backbone
        self.scenario = scenario
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.batching = batching
        self.labeled_per_batch = labeled_per_batch
        self.labeled_rows = labeled_rows
        self.optimizer = optimizer
        self.lr = lr
        self.weight_decay = weight_decay
        self.schedule = schedule
        self.ema = ema
        self.augmentation = augmentation
        self.validation = validation
        self.criterion = criterion
        self.patience = patience
        self.keep = keep
        self.propensity_floor = propensity_floor
        self.propensity_trim = propensity_trim
        self.device = device
        self.dtype = dtype
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_every = checkpoint_every
        self.progress = progress
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        return tags

    def fit(
        self, X: Any, y: Any, *, propensity: Any = None, negative_propensity: Any = None, sample_weight: Any = None
    ) -> Self:
        """Learn from features `X` and PU labels `y` (the s of the papers): 1 labeled positive, 0 unlabeled, −1 labeled
        negative.

        `propensity` holds known e(x) for the labeled rows, in order, or for all rows (entries of other rows are not
        read); `negative_propensity` the same for rows labeled −1. `sample_weight` k means the same as the row standing
        there k times.
        """
        data, known = self._read(X, y, propensity, sample_weight, negative_propensity, reset=True)
        plan, seed = self._plan(data.n_rows), self._seed()
        self.prior_ = self._prior(data, seed)
        e = self._propensity(data, None if known is None else known[data.labeled], seed)
        negative_e = None
        if getattr(plan.method, "uses_negatives", False):
            negative_e = self._negative_propensity(data, known, seed)
        return self._learn(plan, data, e, negative_e, input_spec(data, self.dtype, plan.device), seed)

    def fit_stream(self, stream: StreamedTable, *, propensity: Any = None) -> Self:
        """Learn from rows that do not fit into memory, read again in every epoch: see `pue.model.stream`.

        `propensity` holds e(x) of the labeled rows that train, in order; None: labels are taken as unbiased. The prior
        must be given as a number. Methods of one stage only: the others look at all rows at once.
        """
        if not isinstance(find_method(self.method), Composition):
            raise InvalidInput(
                f"method {self.method!r} looks at all rows at once, so they must fit into memory. Use a method of one "
                'stage, such as "nnpu", or allow more memory.'
            )
        if isinstance(self.prior, str) or self.propensity not in (None, "known"):
            raise InvalidInput(
                "prior and propensities are not estimated from a stream: estimate them on a sample, and pass "
                "prior=0.3 and fit_stream(stream, propensity=e). `pue fit` does both."
            )
        data, seed = stream.data, self._seed()
        plan = self._plan(data.n_rows - 1 + stream.n_streamed)
        self.n_features_in_ = data.x.shape[1]
        self.prior_ = self._prior(data, seed)
        known = None if propensity is None else torch.as_tensor(propensity, dtype=torch.float64)
        e = self._propensity(data, known, seed)
        return self._learn(plan, data, e, None, stream.input_spec, seed, stream)

    def _plan(self, n_rows: int) -> _Plan:
        checkpointing = None
        if self.checkpoint_dir is not None:
            checkpointing = Checkpointing(Path(self.checkpoint_dir), self.checkpoint_every)
        method, device = find_method(self.method), as_device(self.device)
        return _Plan(method, self._training(n_rows), self._loss(), device, checkpointing)

    def _learn(
        self,
        plan: _Plan,
        data: PUData,
        e: Tensor | None,
        negative_e: Tensor | None,
        spec: InputSpec,
        seed: int,
        stream: RowStream | None = None,
    ) -> Self:
        self.input_spec_ = spec
        task = Task(
            data=data,
            prior=self.prior_,
            propensity=e,
            negative_propensity=negative_e,
            build=lambda own_seed: build(self.backbone, spec, seed=own_seed),
            training=plan.training,
            seed=seed,
            loss=plan.loss,
            device=plan.device,
            checkpointing=plan.checkpointing,
            progress=self.progress,
            stream=stream,
        )
        fitted = plan.method.fit(task)
        self.network_, self.history_, self.threshold_ = fitted.network, fitted.history, fitted.threshold
        self.classes_ = np.array([0, 1])
        return self

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _scores(self, x: Features) -> Tensor:
        return score(self.network_, x) - self.threshold_

    def predict_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """Columns P(negative), P(positive): the sigmoid of the score.

        With the logistic loss these are estimates of P(y | x); with a bounded loss such as the sigmoid they rank and
        decide, but are too extreme to be read as probabilities.
        """
        positive = torch.sigmoid(torch.from_numpy(self.decision_function(X))).numpy()
        return np.column_stack([1 - positive, positive])

    def _negative_propensity(self, data: PUData, known: Tensor | None, seed: int) -> Tensor | None:
        """ê of the rows labeled negative: the same estimator, negatives for positives."""
        negative = data.labels == -1
        if not bool(negative.any()):
            return None
        if known is not None:
            if bool(known[negative].isnan().any()):
                raise InvalidInput("labeled negatives are weighted too: pass their negative_propensity.")
            return process(known[negative], floor=self.propensity_floor)[0]
        if self.propensity is None:
            return None
        seen = negatives_for_positives(data)
        estimator = find_propensity(self.propensity)
        model = estimator.fit(seen, prior=1 - self.prior_, seed=derive(seed, 3))
        return examine(model, seen, estimator=estimator, floor=self.propensity_floor)[0]

    def _loss(self) -> Loss | None:
        if self.loss is None:
            return None
        if isinstance(self.loss, str):
            if self.loss not in LOSSES:
                raise UnknownName("loss", self.loss, LOSSES)
            return LOSSES[self.loss]
        return self.loss

    def _training(self, n_rows: int) -> Training:
        size = automatic_size(n_rows) if self.batch_size == "auto" else self.batch_size
        enough, many = (-(-steps * size // n_rows) for steps in (1_000, 20_000))
        automatic = min(500, max(enough, min(20, many)))
        return Training(
            epochs=automatic if self.epochs == "auto" else self.epochs,
            batching=Batching(size, self.batching, self.labeled_per_batch, self.labeled_rows),
            optimizer=self.optimizer,
            lr=self.lr,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            ema=self.ema,
            augmentation=self.augmentation or Augmentation(),
            validation=self.validation,
            criterion=self.criterion,
            patience=self.patience,
            keep=self.keep,
        )
