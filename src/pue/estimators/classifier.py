"""`PUClassifier`: the whole library behind scikit-learn's contract.

X, s ─► PUData ─► prior π ─► propensity ê ─► weights ─► network + risk, or trees ─► scores ─► decisions
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.utils import Tags
from torch import Tensor, nn

from pue.backbones import InputSpec, build, known_backbone
from pue.backbones.inputs import input_spec
from pue.basis import KNOWN, settle_negative_propensity, settle_with_answers
from pue.core.data import Features, PUData
from pue.core.lesson import Lesson
from pue.core.losses import LOSSES, Loss
from pue.core.machine import as_device
from pue.errors import InvalidInput, lookup
from pue.estimators.base import FITTED, PUEstimator
from pue.methods import Composition, Method, Task, Thresholded, UsesNegatives, find_method
from pue.methods.protocol import NeighborVote, scores_of
from pue.methods.selfpu import Students
from pue.persistence import NetworkParts, kept_estimator
from pue.priors.interval import ESTIMATE, PriorEstimate
from pue.propensity import FLOOR, Auto, PropensityEstimator
from pue.training import Augmentation, Batching, Checkpointing, StreamedTable, Training
from pue.training.batches import automatic_size
from pue.training.settings import EpochRecord
from pue.trees import LEARNERS, Learner, Learnt, dense


@kept_estimator(
    fitted={
        **FITTED,
        "input_spec_": InputSpec,
        "network_": nn.Module,
        "trees_": Learnt,
        "vote_": NeighborVote,
        "history_": list[EpochRecord],
        "threshold_": float,
    },
    optional=("feature_names_in_", "vectorizer_"),
    either=("network_", "trees_", "vote_"),
    dropped=("checkpoint_dir", "progress", "_metadata_request"),
    network=NetworkParts("network_", "backbone", "input_spec_", build, pair=Students),
)
@dataclass(eq=False, repr=False)
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
        π, the share of positives in the population. "estimate" is that of `pue.estimate_prior`, and the fit
        warns where its interval is so wide that results would change much inside it.
    backbone : str, nn.Module, callable, Forest, Boosting or Blend
        "auto" (a small CNN for images, an MLP for tables), a name in `pue.BACKBONES`, an import path
        "package.module:factory", "features/" (a folder of `pue features fit` to begin with, see `Pretrained`), a module
        (copied), or a function of an `InputSpec`. Methods of one stage also fit trees with the same weights, whatever
        the method's loss and correction: "forest" or `Forest(n_trees=300)` lowers the squared loss, with a non-negative
        risk in every leaf; "boosting" or `Boosting(rounds=50)` the logistic loss, with LightGBM; "blend" or `Blend()`
        fits both and a regression, and adds them up in the shares that held-out rows ask for. What is said below about
        training is not for trees. They take values that are missing (NaN), with a prior that is given or "estimate" and
        propensities that are given, None or "auto".
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
    progress : None, bool or float
        None: a bar on a terminal, else silence. True: also elsewhere. False: never. A number: elsewhere a line after so
        many seconds.
    random_state : None, int or RandomState
    positive : the word that marks labeled positives in `y`, "fraud"; None: `y` holds 1, 0 and -1.

    Attributes
    ----------
    classes_ : array([0, 1]); 1 is the positive class.
    prior_ : float, the prior used.
    prior_estimate_ : PriorEstimate or None, the estimate with its interval.
    propensity_ : array or None, the clipped propensities of the labeled rows, in order.
    propensity_report_ : PropensityReport or None.
    network_ : nn.Module, the trained network, if it is one.
    trees_ : Trees of a forest, BoostedTrees or Blended, if it is one of the three.
    vote_ : NeighborVote, the rows that method="communities" asks.
    input_spec_ : InputSpec, what the network was built for.
    threshold_ : float, subtracted from the scores of network or trees: they decide at zero.
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

    method: str | Method = "nnpu"
    _: KW_ONLY
    propensity: str | PropensityEstimator | None = None
    prior: float | Literal["estimate"] = "estimate"
    backbone: str | nn.Module | Callable[[InputSpec], nn.Module] | Learner = "auto"
    scenario: str = "single_sample"
    loss: str | Loss | None = None
    epochs: int | Literal["auto"] = "auto"
    batch_size: int | Literal["auto"] = "auto"
    batching: Literal["stratified", "joint", "pooled"] = Batching.mode
    labeled_per_batch: int | None = Batching.labeled
    labeled_rows: Literal["weighted", "drawn"] = Batching.labeled_rows
    optimizer: str = Training.optimizer
    lr: float = Training.lr
    weight_decay: float = Training.weight_decay
    schedule: str = Training.schedule
    ema: float | None = Training.ema
    augmentation: Augmentation | None = None
    validation: float = Training.validation
    criterion: str = Training.criterion
    patience: int | None = Training.patience
    keep: Literal["auto", "best", "last"] = Training.keep
    propensity_floor: float = FLOOR
    propensity_trim: bool = False
    device: str = "cpu"
    dtype: Literal["auto", "float32", "float64"] = "auto"
    checkpoint_dir: str | Path | None = None
    checkpoint_every: int = 1
    progress: bool | float | None = None
    random_state: int | np.random.RandomState | None = None
    positive: str | None = None

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.sparse = self._learner() is None
        tags.input_tags.allow_nan = self._takes_missing()
        return tags

    def fit(
        self, X: Any, y: Any, *, propensity: Any = None, negative_propensity: Any = None, sample_weight: Any = None,
        audit: Lesson | None = None,
    ) -> Self:  # fmt: skip
        """Learn from features `X` and PU labels `y` (the s of the papers): 1 labeled positive, 0 unlabeled, −1 labeled
        negative.

        `propensity` holds known e(x) for the labeled rows, in order, or for all rows (entries of other rows are not
        read); `negative_propensity` the same for rows labeled −1. `sample_weight` k means the same as the row standing
        there k times. `audit` holds answers about unlabeled rows, `pue.audit.Lesson(rows, yes, chance)`: they say the
        prior, are learnt from with their chances, and estimated propensities are brought to agree with them.
        """
        data, known = self._read(X, y, propensity, sample_weight, negative_propensity, reset=True)
        e = None if known is None else known[data.labeled]
        if audit is None:
            return self._learn(data, e, known=known)
        data, e, prior = settle_with_answers(data, self._wishes(), audit, known=e, seed=self._seed())
        return self._learn(data, e, prior=prior)

    def fit_stream(self, stream: StreamedTable, *, propensity: Any = None) -> Self:
        """Learn from rows that do not fit into memory, read again in every epoch: see `pue.app.stream`.

        `propensity` holds e(x) of the labeled rows that train, in order; None: labels are taken as unbiased. The prior
        must be given as a number. Methods of one stage only: the others look at all rows at once.
        """
        learner = self._learner()
        if learner is not None:
            raise InvalidInput(
                f"{learner.called} looks at all rows at once, so they must fit into memory. Use a network, "
                'backbone="tabular", or allow more memory.'
            )
        if not isinstance(find_method(self.method), Composition):
            raise InvalidInput(
                f"method {self.method!r} looks at all rows at once, so they must fit into memory. Use a method of one "
                'stage, such as "nnpu", or allow more memory.'
            )
        if isinstance(self.prior, str) or self.propensity not in (None, KNOWN):
            raise InvalidInput(
                "prior and propensities are not estimated from a stream: estimate them on a sample, and pass "
                "prior=0.3 and fit_stream(stream, propensity=e). `pue fit` does both."
            )
        self.n_features_in_ = stream.data.x.shape[1]
        e = None if propensity is None else torch.as_tensor(propensity, dtype=torch.float64)
        return self._learn(stream.data, e, stream=stream)

    def _learn(
        self, data: PUData, e: Tensor | None, *, known: Tensor | None = None, stream: StreamedTable | None = None,
        prior: PriorEstimate | None = None,
    ) -> Self:  # fmt: skip
        """`e` are known propensities of the labeled rows, `known` those of all rows, not a number where unknown, and
        `prior` is one that is there already."""
        checkpointing = None  # what can be wrong about the settings is said before anything takes time
        if self.checkpoint_dir is not None:
            checkpointing = Checkpointing(Path(self.checkpoint_dir), self.checkpoint_every)
        if isinstance(self.backbone, str) and self.backbone not in (*LEARNERS, "auto"):
            known_backbone(self.backbone, *LEARNERS)
        method, device, learner = find_method(self.method), as_device(self.device), self._learner()
        if learner is not None:
            self._require_trees(learner, method, data.x)
        n_rows = data.n_rows if stream is None else data.n_rows - 1 + stream.n_streamed
        training, loss, seed = self._training(n_rows), self._loss(), self._seed()
        basis, negative_e = self._settle(data, e, seed, prior=prior, stacklevel=4), None
        if isinstance(method, UsesNegatives):
            negative_e = settle_negative_propensity(data, self._wishes(), self.prior_, known=known, seed=seed)
        if learner is not None:  # it has no use for means and spreads
            spec = InputSpec(tuple(data.x.shape[1:]))
        else:
            spec = input_spec(data, self.dtype, device) if stream is None else stream.input_spec
        self.input_spec_, backbone = spec, "auto" if isinstance(self.backbone, Learner) else self.backbone
        task = Task(
            data=data,
            prior=self.prior_,
            propensity=basis.e,
            negative_propensity=negative_e,
            build=lambda own_seed: build(backbone, spec, seed=own_seed),
            training=training,
            seed=seed,
            loss=loss,
            device=device,
            checkpointing=checkpointing,
            progress=self.progress,
            stream=stream,
            learner=learner,
        )
        fitted = method.fit(task)
        for name in ("network_", "trees_", "vote_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        if isinstance(fitted.model, Learnt):
            self.trees_ = fitted.model
        elif isinstance(fitted.model, NeighborVote):
            self.vote_ = fitted.model
        else:
            self.network_ = fitted.model
        self.history_, self.threshold_ = fitted.history, fitted.threshold
        self.classes_ = np.array([0, 1])
        return self

    def _scores(self, x: Features) -> Tensor:
        return scores_of(vars(self).get("trees_") or vars(self).get("vote_") or self.network_, x) - self.threshold_

    def _learner(self) -> Learner | None:
        """The trees that were asked for; None: a network."""
        if isinstance(self.backbone, str):
            return LEARNERS.get(self.backbone)
        return self.backbone if isinstance(self.backbone, Learner) else None

    def _takes_missing(self) -> bool:
        """Trees do, and so do the estimates that a table gets by default."""
        prior = not isinstance(self.prior, str) or self.prior == ESTIMATE
        propensity = self.propensity in (None, KNOWN, "auto", "constant") or isinstance(self.propensity, Auto)
        return self._learner() is not None and prior and propensity

    def _require_trees(self, learner: Learner, method: Method, x: Features) -> None:
        """Refuse what trees cannot do."""
        base = method.base if isinstance(method, Thresholded) else method
        if not (isinstance(base, Composition) and base.weights_alone):
            raise InvalidInput(
                f'method {self.method!r} needs a network: backbone="auto". Trees take methods of one stage whose '
                'weights say all, such as "nnpu" or "ipw".'
            )
        for name, neutral in (("loss", None), ("augmentation", None), ("checkpoint_dir", None), ("device", "cpu")):
            if self.get_params(deep=False)[name] != neutral:
                raise InvalidInput(
                    f"{learner.called} has no use for {name}: leave {name}={neutral!r}, or train a network."
                )
        dense(x)

    def _loss(self) -> Loss | None:
        return lookup("loss", self.loss, LOSSES) if isinstance(self.loss, str) else self.loss

    def _training(self, n_rows: int) -> Training:
        size = automatic_size(n_rows) if self.batch_size == "auto" else self.batch_size
        enough, many = (-(-steps * size // n_rows) for steps in (1_000, 20_000))
        automatic = min(500, max(enough, min(20, many)))
        found = {
            "batch_size": size,
            "epochs": automatic if self.epochs == "auto" else self.epochs,
            "augmentation": self.augmentation or Augmentation(),
        }
        return Training().with_options({**self.get_params(deep=False), **found})
