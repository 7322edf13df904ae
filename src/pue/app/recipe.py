"""The settings of `pue fit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pue.app.classifiers import choices
from pue.app.threshold import check_rule
from pue.core.data import Scenario
from pue.errors import InvalidInput, UnknownName
from pue.judging.calibration import CALIBRATIONS
from pue.priors import PRIORS
from pue.propensity import PROPENSITIES

Say = Callable[[str], None]
"""Is told what happens next."""


@dataclass(frozen=True)
class Recipe:
    """Everything about a fit but the rows."""

    method: str = "auto"
    propensity: str | None = "auto"
    """A name in `PROPENSITIES`, None (labels are taken as unbiased); known ones come with the rows."""
    prior: float | str = "estimate"
    scenario: str = "single_sample"
    calibration: str = "auto"
    """"platt", "isotonic", or "auto": isotonic where the labels are worth `MANY` rows or more."""
    threshold: float | str = "f1"
    precision: float | None = None
    folds: int = 5
    """Few folds make estimates pessimistic: their models see fewer labels than the final one."""
    epochs: int | None = None
    """Of a network; None: by size, see `pue.app.time_budget`."""
    time_budget: float | None = None
    """Instead: seconds that a fit may take, about."""
    jobs: int = 1
    seed: int = 0
    progress: bool | float | None = None
    """Whether training shows a bar, as in `PUClassifier`."""
    labeling_columns: tuple[str, ...] = ()
    """Columns that the labeling depends on, if they are known: with propensity "auto"."""
    ignore_for_labeling: tuple[str, ...] = ()
    """Or those that it cannot depend on."""

    def __post_init__(self) -> None:
        """What can be wrong about a recipe is said before anything takes time."""
        for kind, name, known in (
            ("method", self.method, choices()),
            ("propensity", self.propensity or "none", ["none", *PROPENSITIES]),
            ("prior", self.prior if isinstance(self.prior, str) else "estimate", ["estimate", *PRIORS]),
            ("calibration", self.calibration, ["auto", *CALIBRATIONS]),
        ):
            if name not in known:
                raise UnknownName(kind, name, known)
        if self.labeling_columns and self.ignore_for_labeling:
            raise InvalidInput(
                "labeling columns and columns to ignore for the labeling were both named. Name one of the two: all "
                "other columns follow."
            )
        if (self.labeling_columns or self.ignore_for_labeling) and self.propensity != "auto":
            raise InvalidInput(f"columns of the labeling go with propensity 'auto'; got {self.propensity or 'none'!r}.")
        if self.time_budget is not None and (self.epochs is not None or not self.time_budget > 0):
            raise InvalidInput("a time budget is a number of seconds above 0, and takes the place of epochs.")
        Scenario.parse(self.scenario)
        check_rule(self.threshold, self.precision)
