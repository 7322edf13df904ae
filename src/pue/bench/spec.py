"""A run, completely described: `Spec`, frozen, ⇄ TOML, with a key that is the hash of its contents."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from pue.backbones import BACKBONES
from pue.bench.conform import Options, conform, make, plain
from pue.bench.datasets import DATASETS
from pue.bench.features import RECIPES
from pue.bench.options import make_estimator, make_method
from pue.core.losses import LOSSES
from pue.errors import InvalidInput, UnknownName
from pue.methods import METHODS
from pue.priors import PRIORS
from pue.priors.interval import ESTIMATE
from pue.propensity import PROPENSITIES
from pue.training import Augmentation, Batching, Training

SCHEMA = 1
"""Takes part in every key. A new field that is None where it is not used changes no key; anything else raises this."""
SUPERVISED = "supervised"
"""The one method that a run gives all true classes: the ceiling."""


@dataclass(frozen=True)
class Labels:
    """Which positives get a label.

    | kind       | `mix`, in the order of the positive classes                            | number of each class |
    |------------|------------------------------------------------------------------------|----------------------|
    | "scar"     | none                                                                   | as it comes          |
    | "mix"      | the share of the labels that goes to each class (the paper)            | multinomial          |
    | "severity" | the relative chance of a member of each class to be labeled            | rounded              |
    """

    kind: str
    n_labeled: int
    mix: tuple[float, ...] | None = None
    n_negative: int | None = None
    """Negatives that are labeled as such (PUbN); None: none are."""
    negative_mix: tuple[float, ...] | None = None
    """The share of them that goes to each negative class, in order; multinomial."""

    def __post_init__(self) -> None:
        conform(self)
        _require("kind of labels", self.kind, ["mix", "scar", "severity"])
        if self.n_labeled < 1:
            raise InvalidInput(f"n_labeled must be at least 1; got {self.n_labeled}.")
        if (self.kind == "scar") != (self.mix is None):
            raise InvalidInput('labels of kind "scar" have no mix; "mix" and "severity" need one number a class.')
        if self.mix is not None and (min(self.mix, default=-1) < 0 or not sum(self.mix) > 0):
            raise InvalidInput(f"mix must hold one number a positive class, none negative; got {list(self.mix)}.")
        if self.kind == "mix" and abs(sum(self.mix or ()) - 1) > 1e-6:
            raise InvalidInput(f"mix must hold shares that sum to 1; got {list(self.mix or ())}.")
        if (self.n_negative is None) != (self.negative_mix is None):
            raise InvalidInput("labeled negatives need both their number, n_negative, and their negative_mix.")
        if self.n_negative is not None and self.n_negative < 1:
            raise InvalidInput(f"n_negative must be at least 1; got {self.n_negative}.")


@dataclass(frozen=True)
class Settings:
    """How to train, resolved: nothing here is looked up anywhere else. None: off."""

    backbone: str = "auto"
    epochs: int = 10
    batch_size: int = Batching.size
    batching: str = Batching.mode
    labeled_per_batch: int | None = None
    labeled_rows: str | None = None
    optimizer: str = Training.optimizer
    lr: float = Training.lr
    weight_decay: float = 5e-3
    schedule: str = Training.schedule
    loss: str | None = None
    """None: the method's own."""
    ema: float | None = None
    shift: int | None = None
    flip: bool | None = None
    rotate: float | None = None
    mixup: float | None = None
    validation: float | None = None
    criterion: str | None = None
    patience: int | None = None
    keep: str | None = None
    propensity_floor: float | None = None
    features: str | None = None
    """A name in `bench.features.RECIPES`: runs see features that were learnt without labels, not images."""
    image_size: int | None = None
    """Height and width that images are resized to, where the data set can."""
    rows: int | None = None
    """At most so many rows of the training and of the test set; None: all."""
    disjoint: bool | None = None
    """Whether no person is in both parts, where the data set shows people; None: the official parts."""

    def __post_init__(self) -> None:
        conform(self)
        _require("backbone", self.backbone, [*BACKBONES, "auto"])
        if self.loss is not None:
            _require("loss", self.loss, LOSSES)
        if self.features is not None:
            _require("recipe of features", self.features, RECIPES)
        for name in ("rows", "image_size"):
            value = getattr(self, name)
            if value is not None and value < 2:
                raise InvalidInput(f"{name} must be at least 2; got {value}.")
        Training().with_options(self.classifier)  # which checks the rest

    @property
    def classifier(self) -> dict[str, Any]:
        """What `PUClassifier` is told, but for the backbone."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self)}
        chosen = {name: value for name, value in chosen.items() if value is not None}
        augmented = {name: chosen.pop(name) for name in ("shift", "flip", "rotate", "mixup") if name in chosen}
        for name in ("backbone", "features", "image_size", "rows", "disjoint"):
            chosen.pop(name, None)
        return {**chosen, "augmentation": Augmentation(**augmented)} if augmented else chosen


@dataclass(frozen=True)
class Spec:
    """One run. Two specs with the same key are the same run.

    >>> spec = Spec("digits", "nnpu", Labels("scar", 50), Settings(epochs=1))
    >>> spec == Spec.from_dict(spec.to_dict()), spec.name
    (True, 'digits-nnpu-none-s0-...')
    """

    dataset: str
    method: str
    labels: Labels
    settings: Settings
    propensity: str = "none"
    """"none", "true", or a name in `PROPENSITIES`."""
    seed: int = 0
    preset: str = "custom"
    """Where the settings came from."""
    prior: str | float = "data"
    """"data": the share of positives in the training set; or a number, or the estimator that must find it."""
    method_options: Options = ()
    """Fields of the method's value, such as PUbN's tau."""
    propensity_options: Options = ()
    """Fields of the estimator's value, such as alpha; for "network" also those of its training."""

    def __post_init__(self) -> None:
        conform(self)
        _require("data set", self.dataset, DATASETS)
        _require("method", self.method, METHODS)
        _require("propensity", self.propensity, ["none", "true", *PROPENSITIES])
        if self.seed < 0:
            raise InvalidInput(f"seed must not be negative; got {self.seed}.")
        known = self.prior in ("data", ESTIMATE, *PRIORS) if isinstance(self.prior, str) else 0 < self.prior < 1
        if not known:
            raise InvalidInput(f'prior must be "data", a name in pue.PRIORS or a number in (0, 1); got {self.prior!r}.')
        if self.method == SUPERVISED and (self.propensity != "none" or self.method_options):
            raise InvalidInput("the supervised ceiling has neither propensities nor options.")
        if self.propensity_options and self.propensity in ("none", "true"):
            raise InvalidInput(f'propensity = "{self.propensity}" has no options; name an estimator.')
        make_method(self.method, dict(self.method_options))
        if self.estimates:
            make_estimator(self.propensity, dict(self.propensity_options))

    @property
    def estimates(self) -> bool:
        """Whether propensities have to be estimated."""
        return self.propensity not in ("none", "true")

    @cached_property
    def key(self) -> str:
        return digest(self.to_dict())

    @property
    def name(self) -> str:
        """The file name of its record, without the ending."""
        return f"{self.dataset}-{self.method}-{self.propensity}-s{self.seed}-{self.key[:12]}"

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = plain(self)
        return {"schema": SCHEMA, **found}

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Spec:
        values = dict(table)
        schema = values.pop("schema", SCHEMA)
        if schema != SCHEMA:
            raise InvalidInput(f"this spec has schema {schema!r}; this version of pue reads schema {SCHEMA}.")
        return make(cls, values, "a spec")

    @classmethod
    def from_toml(cls, text: str) -> Spec:
        try:
            table = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"not valid TOML: {error}") from error
        return cls.from_dict(table)


def read_spec(path: Path) -> Spec:
    """The spec in a TOML file; errors name the file."""
    try:
        return Spec.from_toml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from error


def _require(kind: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise UnknownName(kind, name, known)


def digest(table: Mapping[str, Any]) -> str:
    """sha256 of canonical JSON: the order of fields does not matter.

    >>> digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    True
    """
    text = json.dumps(table, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()
