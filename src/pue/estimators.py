"""`PUClassifier`: the whole library behind scikit-learn's contract.

X, s ─► PUData ─► prior π ─► propensity ê ─► weights ─► network + risk ─► train ─► scores ─► decisions
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor, nn

from pue.backbones import InputSpec, build
from pue.data import (
    Features,
    PUData,
    Scenario,
    as_matrix,
    non_finite_columns,
    require_prior,
    require_propensity,
    require_vector,
    select,
)
from pue.decisions import decide
from pue.errors import InvalidInput, UnknownName
from pue.losses import LOSSES, Loss, zero_one
from pue.methods import find_method, pu_weights
from pue.priors import elkan_noto
from pue.propensity import PROPENSITIES, PropensityEstimator, PropensityModel, process
from pue.risks import upu
from pue.training import Augmentation, Batching, Checkpointing, Training, score, train


class PUClassifier(ClassifierMixin, BaseEstimator):
    """A binary classifier from labeled positives and unlabeled rows, corrected for biased labeling.

    Parameters
    ----------
    method : str
        A name in `pue.METHODS`: "nnpu", "upu", "distpu", …
    propensity : None, "known", "auto", a name in `pue.PROPENSITIES`, or an estimator
        None: labels are taken to be unbiased (SCAR), unless `fit` is given known propensities. Otherwise the labeled
        rows are weighted by their normalised inverse propensity: nnPU becomes nnPUe, and so on.
    prior : float or "estimate"
        π, the share of positives in the population. "estimate": Elkan and Noto's, which assumes SCAR.
    backbone : str, nn.Module or callable
        "auto" (a small CNN for images, an MLP for tables), a name in `pue.BACKBONES`, an import path
        "package.module:factory", a module (copied), or a function of an `InputSpec`.
    scenario : "single_sample" or "case_control"
        One table in which some rows are labeled, or labeled rows collected beside an unlabeled sample.
    loss : None, str or callable
        A name in `pue.LOSSES`, or ℓ(margin); None: the method's own.
    epochs : int or "auto"
        "auto": about 1,000 steps, but at least 20 and at most 500 epochs.
    batch_size, batching, labeled_per_batch, labeled_rows
        See `pue.training.Batching`. Data that fit into one batch are used whole, in order.
    optimizer, lr, weight_decay, schedule, ema, validation, patience
        See `pue.training.Training`.
    augmentation : None or Augmentation
        Shift, flip, rotate (images) and mixup.
    propensity_floor : float
        Smallest propensity; smaller estimates are clipped and counted in `propensity_report_`.
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
    propensity_ : array or None, the clipped propensities of the labeled rows, in order.
    propensity_report_ : PropensityReport or None.
    network_ : nn.Module, the trained network.
    history_ : list of EpochRecord.

    Examples
    --------
    >>> import numpy as np
    >>> from pue import PUClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(2000) < 0.4
    >>> X = rng.normal(size=(2000, 2)) + 2.5 * y[:, None]
    >>> e = 1 / (1 + np.exp(1.5 - X[:, 1]))           # which positives get a label depends on X
    >>> s = (y & (rng.random(2000) < e)).astype(int)
    >>> plain = PUClassifier(prior=0.4, random_state=0).fit(X, s)
    >>> corrected = PUClassifier(prior=0.4, random_state=0).fit(X, s, propensity=e)
    >>> bool(np.mean(corrected.predict(X) == y) > np.mean(plain.predict(X) == y) > 0.9)
    True
    """

    def __init__(
        self,
        method: str = "nnpu",
        *,
        propensity: str | PropensityEstimator | None = None,
        prior: float | Literal["estimate"] = "estimate",
        backbone: str | nn.Module | Callable[[InputSpec], nn.Module] = "auto",
        scenario: str = "single_sample",
        loss: str | Loss | None = None,
        epochs: int | Literal["auto"] = "auto",
        batch_size: int = 256,
        batching: Literal["stratified", "joint"] = "stratified",
        labeled_per_batch: int | None = None,
        labeled_rows: Literal["weighted", "drawn"] = "weighted",
        optimizer: str = "adam",
        lr: float = 1e-3,
        weight_decay: float = 1e-4,
        schedule: str = "cosine",
        ema: float | None = None,
        augmentation: Augmentation | None = None,
        validation: float = 0.0,
        patience: int | None = None,
        propensity_floor: float = 1e-4,
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
        self.patience = patience
        self.propensity_floor = propensity_floor
        self.device = device
        self.dtype = dtype
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_every = checkpoint_every
        self.progress = progress
        self.random_state = random_state

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        tags.input_tags.three_d_array = True
        return tags

    def fit(self, X: Any, y: Any, *, propensity: Any = None, sample_weight: Any = None) -> Self:
        """Learn from features `X` and PU labels `y` (the s of the papers): 1 labeled positive, 0 unlabeled, −1 labeled
        negative.

        `propensity` holds known e(x) for the labeled rows, in order, or for all rows (entries of other rows are not
        read). `sample_weight` k means the same as the row standing there k times.
        """
        x, labels = self._validate(X, y)
        known = self._known_propensity(propensity, labels)
        data, known = self._weighted(x, labels, known, sample_weight, X)
        method = find_method(self.method)
        loss = self._loss(method.loss)
        self._settings(1)  # wrong settings are an error before any work is done
        self.prior_ = self._prior(data)
        self._propensity_model: PropensityModel | None = None
        self.propensity_, self.propensity_report_ = None, None
        e = self._propensity(data, known)
        if e is not None:
            clipped, self.propensity_report_ = process(e, floor=self.propensity_floor)
            self.propensity_ = clipped.numpy()
            e = clipped
        weights = method.weigh(data, self.prior_, e)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        spec = self._input_spec(data)
        network = build(self.backbone, spec, seed=seed)
        checkpointing = None
        if self.checkpoint_dir is not None:
            checkpointing = Checkpointing(Path(self.checkpoint_dir), self.checkpoint_every)
        self.history_ = train(
            network,
            data,
            weights,
            method.risk(self.prior_, loss),
            self._settings(data.n_rows),
            seed=seed,
            device=_device(self.device),
            checkpointing=checkpointing,
            progress=self.progress,
        )
        self.network_ = network
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, X: Any) -> NDArray[np.floating[Any]]:
        """Scores g(x); positive where the row is called positive."""
        check_is_fitted(self)
        x = self._features(X, reset=False)
        scores: NDArray[np.floating[Any]] = score(self.network_, x).numpy()
        return scores

    def predict(self, X: Any) -> NDArray[np.int64]:
        """1 where the score is at least zero, else 0."""
        labels: NDArray[np.int64] = decide(torch.from_numpy(self.decision_function(X))).numpy()
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """Columns P(negative), P(positive): the sigmoid of the score.

        With the logistic loss these are estimates of P(y | x); with a bounded loss such as the sigmoid they rank and
        decide, but are too extreme to be read as probabilities.
        """
        positive = torch.sigmoid(torch.from_numpy(self.decision_function(X))).numpy()
        return np.column_stack([1 - positive, positive])

    def score(self, X: Any, y: Any, *, propensity: Any = None, sample_weight: Any = None) -> float:
        """Accuracy as estimated from PU labels: one minus the unbiased PU risk of the 0-1 loss.

        Higher is better, and it means the same in `GridSearchCV`, where true classes are unknown. It can leave [0, 1]
        on small samples. Labeled rows are weighted by `propensity` where given, else by the fitted propensity model,
        else alike. If you do have the true classes, use `sklearn.metrics.accuracy_score(truth, clf.predict(X))`.
        """
        check_is_fitted(self)
        x, labels = self._validate(X, y, reset=False)
        known = self._known_propensity(propensity, labels)
        data, known = self._weighted(x, labels, known, sample_weight, X)
        if known is None and self._propensity_model is not None:
            known, _ = process(self._propensity_model(select(data.x, data.labeled)), floor=self.propensity_floor)
        # A fold may by chance hold a larger share of labeled rows than the prior allows.
        prior = max(self.prior_, float(data.labeled.double().mean())) if self._single else self.prior_
        weights = pu_weights(data, prior, known)
        return 1.0 - float(upu(zero_one)(score(self.network_, data.x).double(), weights))

    @property
    def _single(self) -> bool:
        return Scenario.parse(self.scenario) is Scenario.SINGLE_SAMPLE

    def _features(self, X: Any, *, reset: bool) -> Features:
        """X as a tensor or CSR matrix: uint8 stays, other integers become float64; finite, or the columns are named."""
        if isinstance(X, Tensor):
            X = X.detach().cpu().numpy()
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", allow_nd=True, ensure_all_finite=False, dtype="numeric"
        )
        if sparse.issparse(X):
            x: Features = X.astype(_float_type(X.dtype), copy=False)
        else:
            kept = X if X.dtype == np.uint8 else X.astype(_float_type(X.dtype), copy=False)
            x = torch.from_numpy(np.require(kept, requirements=["C", "W"]))
        bad = non_finite_columns(x)
        if bad:
            names = getattr(self, "feature_names_in_", None)
            shown = ", ".join(str(column if names is None else names[column]) for column in bad[:5])
            more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
            raise InvalidInput(
                f"X contains NaN or infinity in column(s) {shown}{more}. Impute or drop them, for example with "
                "sklearn.impute.SimpleImputer in a Pipeline."
            )
        return x

    def _validate(self, X: Any, s: Any, *, reset: bool = True) -> tuple[Features, NDArray[Any]]:
        if s is None:
            raise InvalidInput(
                f"{type(self).__name__} requires y to be passed, but the target y is None. Pass the labels s."
            )
        x = self._features(X, reset=reset)
        if isinstance(s, Tensor):
            s = s.detach().cpu().numpy()
        labels = column_or_1d(s, warn=True)
        check_classification_targets(labels)
        if labels.dtype.kind not in "biuf":
            raise InvalidInput(
                "labels must be 1 (labeled positive), 0 (unlabeled) or -1 (labeled negative); got values of type "
                f"{labels.dtype}. Recode them, for example with (column == 'yes').astype(int)."
            )
        if type_of_target(labels) == "multiclass" and not set(np.unique(labels)) <= {-1, 0, 1}:
            raise InvalidInput(
                "Only binary classification is supported. The type of the target is multiclass. Labels must be 1 "
                "(labeled positive), 0 (unlabeled) or -1 (labeled negative)."
            )
        if x.shape[0] != len(labels):
            raise InvalidInput(f"X has {x.shape[0]} rows but s has {len(labels)}. Pass one label for every row.")
        return x, labels

    def _known_propensity(self, propensity: Any, labels: NDArray[Any]) -> Tensor | None:
        """Known propensities as a vector over all rows, not a number where the row is not labeled."""
        if propensity is None:
            return None
        if self.propensity not in (None, "known"):
            raise InvalidInput(
                f"propensity={self.propensity!r} estimates propensities, but fit was given known ones too. Use "
                'propensity="known" or leave them out of fit.'
            )
        values = torch.as_tensor(np.asarray(propensity, dtype=np.float64))
        require_vector("propensity", values)
        labeled = torch.from_numpy(labels == 1)
        if len(values) == len(labels):
            values = values[labeled]
        require_propensity(values, int(labeled.sum()))
        full = torch.full((len(labels),), torch.nan, dtype=torch.float64)
        full[labeled] = values
        return full

    def _weighted(
        self, x: Features, labels: NDArray[Any], known: Tensor | None, sample_weight: Any, X: Any
    ) -> tuple[PUData, Tensor | None]:
        """The data without rows of weight zero, and the known propensities of its labeled rows."""
        weight = None
        if sample_weight is not None:
            checked = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            weight = torch.from_numpy(np.array(checked))
            kept = weight > 0
            if not bool(kept.all()):
                x, labels, weight = select(x, kept), labels[kept.numpy()], weight[kept]
                known = None if known is None else known[kept]
        data = PUData(x, torch.from_numpy(np.array(labels)), Scenario.parse(self.scenario), weight)
        return data, None if known is None else known[data.labeled]

    def _prior(self, data: PUData) -> float:
        if self.prior == "estimate":
            return elkan_noto(data)
        if isinstance(self.prior, str):
            raise UnknownName("prior", self.prior, ["estimate"])
        prior = float(self.prior)
        require_prior(prior, data.labels, data.scenario, data.sample_weight)
        return prior

    def _propensity(self, data: PUData, known: Tensor | None) -> Tensor | None:
        if known is not None or self.propensity is None:
            return known
        if self.propensity == "known":
            raise InvalidInput('propensity="known" needs the values: fit(X, s, propensity=e).')
        estimator = self.propensity
        if isinstance(estimator, str):
            if estimator not in PROPENSITIES:
                raise UnknownName("propensity", estimator, [*PROPENSITIES, "known"])
            estimator = PROPENSITIES[estimator]
        if not isinstance(estimator, PropensityEstimator):
            raise InvalidInput(f"propensity must be a name or have a method fit(data, prior=…); got {estimator!r}.")
        model = estimator.fit(data, prior=self.prior_)
        self._propensity_model = model
        return model(select(data.x, data.labeled))

    def _loss(self, default: Loss) -> Loss:
        if self.loss is None:
            return default
        if isinstance(self.loss, str):
            if self.loss not in LOSSES:
                raise UnknownName("loss", self.loss, LOSSES)
            return LOSSES[self.loss]
        return self.loss

    def _settings(self, n_rows: int) -> Training:
        automatic = min(500, max(20, -(-1000 * self.batch_size // n_rows)))
        return Training(
            epochs=automatic if self.epochs == "auto" else self.epochs,
            batching=Batching(self.batch_size, self.batching, self.labeled_per_batch, self.labeled_rows),
            optimizer=self.optimizer,
            lr=self.lr,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            ema=self.ema,
            augmentation=self.augmentation or Augmentation(),
            validation=self.validation,
            patience=self.patience,
        )

    def _input_spec(self, data: PUData) -> InputSpec:
        shape = tuple(data.x.shape[1:])
        own = isinstance(data.x, Tensor) and data.x.dtype == torch.float64
        own = own or (sparse.issparse(data.x) and data.x.dtype == np.float64)
        dtypes = {"auto": torch.float64 if own else torch.float32, "float32": torch.float32, "float64": torch.float64}
        if self.dtype not in dtypes:
            raise UnknownName("dtype", self.dtype, dtypes)
        dtype = dtypes[self.dtype]
        if len(shape) > 1 or (isinstance(data.x, Tensor) and data.x.dtype == torch.uint8):
            return InputSpec(shape, dtype=dtype)
        weight = None if data.sample_weight is None else data.sample_weight.numpy()
        scaler = StandardScaler(with_mean=not sparse.issparse(data.x)).fit(as_matrix(data.x), sample_weight=weight)
        mean, variance = (torch.from_numpy(np.asarray(v, dtype=np.float64)) for v in (scaler.mean_, scaler.var_))
        return InputSpec(shape, mean, variance.sqrt(), dtype)


def _float_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    return np.float32 if dtype in (np.float16, np.float32) else np.float64


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UnknownName("device", name, ["cpu", "cuda", "mps"]) from None
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(device.type, False):
        raise InvalidInput(f'device "{name}" is not available on this machine. Use device="cpu".')
    return device
