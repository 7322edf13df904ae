"""What a run leaves behind: one frozen `Record`, written by the bench, read by the live table and the report.

Several runs give a `MeanSd`: no number without its spread and n.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

from pue.bench.conform import make
from pue.bench.datasets.labeled import FeaturesId
from pue.bench.spec import SCHEMA
from pue.errors import InvalidInput
from pue.judging.truth import Metrics


@dataclass(frozen=True)
class DataId:
    """Which data, and the sha256 of all of them, shortened."""

    name: str
    checksum: str


@dataclass(frozen=True)
class Cost:
    """Of the training alone: what the propensities cost stands with them."""

    wall_seconds: float
    cpu_seconds: float
    flops: int
    peak_memory_bytes: int


@dataclass(frozen=True)
class PropensitySummary:
    """What is worth knowing about the propensities of a run."""

    source: str
    effective_sample_size: float
    share_distance: float
    """Total variation between the classes' shares of the weights and of the positives."""
    alarm: str | None
    seconds: float
    cpu: float


@dataclass(frozen=True)
class Propensities:
    """e of a run's labeled rows: what runs share that need the same estimate."""

    key: str
    spec: Mapping[str, Any]
    """All that an estimate depends on."""
    summary: PropensitySummary
    values: tuple[float, ...]
    negative_values: tuple[float, ...] | None = None
    """The same of rows labeled negative, where there are any."""

    def to_dict(self) -> dict[str, Any]:
        body = {"schema": SCHEMA, "key": self.key, "spec": self.spec, **asdict(self.summary), "values": self.values}
        return body if self.negative_values is None else {**body, "negative_values": self.negative_values}

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Propensities:
        summary = {field.name: body[field.name] for field in fields(PropensitySummary) if field.name in body}
        rest = {name: value for name, value in body.items() if name not in summary and name != "schema"}
        return make(cls, {**rest, "summary": summary}, "propensities")


@dataclass(frozen=True)
class Record:
    """One finished run."""

    key: str
    spec: Mapping[str, Any]
    """As it was written; an older version may have known other settings."""
    row: str
    """The name it goes by in a table, such as "uPUe"."""
    metrics: Metrics
    history: tuple[Mapping[str, Any], ...]
    propensity: PropensitySummary | None
    prior: float
    n_labeled: int
    n_unlabeled: int
    data: DataId
    warnings: tuple[str, ...]
    versions: Mapping[str, Any]
    cost: Cost
    finished: str
    features: FeaturesId | None = None
    """What the run saw instead of images."""

    def to_dict(self) -> dict[str, Any]:
        body = {"schema": SCHEMA, **asdict(self)}
        if self.features is None:  # as records were before there were features
            del body["features"]
        return body

    @classmethod
    def from_dict(cls, body: Mapping[str, Any]) -> Record:
        found = make(cls, {name: value for name, value in body.items() if name != "schema"}, "a record")
        seed, dataset = found.spec.get("seed"), found.spec.get("dataset", "")
        if type(seed) is not int or not isinstance(dataset, str) or not all(map(_is_epoch, found.history)):
            raise InvalidInput("its spec or its history is none of a run.")
        if not all(value is None or 0 <= value <= 1 for value in found.metrics.as_dict().values()):
            raise InvalidInput("its metrics are no shares.")
        return found

    @property
    def seed(self) -> int:
        return int(self.spec["seed"])

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The whole spec but the seed: what must be equal in runs that are averaged."""
        return {name: value for name, value in self.spec.items() if name != "seed"}

    @cached_property
    def identity(self) -> str:
        """The settings as text; equal settings, equal text."""
        return json.dumps(self.settings, sort_keys=True)

    def percent(self, metric: str) -> float:
        return 100 * self.metrics.as_dict()[metric]


def _is_epoch(entry: Any) -> bool:
    return isinstance(entry, Mapping) and all(isinstance(value, int | float | None) for value in entry.values())


@dataclass(frozen=True)
class MeanSd:
    """A mean, its sample standard deviation (ddof = 1; None for a single value) and the number of values."""

    mean: float
    sd: float | None
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> MeanSd | None:
        """The spread of some values, or None where there are none.

        >>> MeanSd.of([1.0, 2.0, 3.0]), MeanSd.of([4.0]), MeanSd.of([])
        (MeanSd(mean=2.0, sd=1.0, n=3), MeanSd(mean=4.0, sd=None, n=1), None)
        """
        n = len(values)
        if n == 0:
            return None
        mean = math.fsum(values) / n
        sd = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (n - 1)) if n > 1 else None
        return cls(mean, sd, n)

    def text(self, form: str = ".2f") -> str:
        """
        >>> MeanSd(92.283, 1.319, 6).text(), MeanSd(92.283, None, 1).text()
        ('92.28 ± 1.32', '92.28')
        """
        mean = f"{self.mean:{form}}"
        return mean if self.sd is None else f"{mean} ± {self.sd:{form.removeprefix('+')}}"
