"""pue as a user would call it: `PUClassifier`, `estimate_prior`, and `pue fit` with `pue evaluate` on files."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from answers import JUDGED, Answer, Method, judge
from labelings import Floats
from problems import Part, Problem

import pue
from pue.app.evaluate import evaluate_source
from pue.app.fit_source import fit_source
from pue.app.model import PUModel
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.sources.opening import open_source
from pue.errors import InvalidInput

LABEL = "is labeled"
BACKBONES = {"blend": "blend", "forest": "forest", "boosting": "boosting", "network": "tabular"}
"""What the study calls a learner → what `PUClassifier` calls it. The first is what `pue fit` takes here."""
NAMED = 3
"""Drivers that are kept of those that `pue fit` names."""


def classifier(
    problem: Problem, *, backbone: str, propensity: str | None, prior: Literal["estimate"] | None = None
) -> Answer:
    """`prior` None: the true one is given. `propensity` "true": the true e of the labeled rows is."""
    train, test, true_e = problem.train, problem.test, propensity == "true"
    model = pue.PUClassifier(
        "nnpu",
        backbone=backbone,
        propensity=None if true_e else propensity,
        prior=problem.prior if prior is None else prior,
        random_state=problem.seed,
        progress=False,
    )
    model.fit(train.x, train.s.astype(int), propensity=train.e if true_e else None)
    scores, called = model.decision_function(test.x), model.predict(test.x) == 1
    return Answer(np.asarray(scores, np.float64), called, {"prior": float(model.prior_), "true_prior": problem.prior})


def estimated_prior(problem: Problem) -> Answer:
    found = pue.estimate_prior(problem.train.x, problem.train.s.astype(int), level=0.95, seed=problem.seed)
    interval = {"prior": found.value, "prior_low": found.low, "prior_high": found.high, "prior_level": found.level}
    return Answer(found={**interval, "true_prior": problem.prior})


def command(problem: Problem, *, given: bool) -> Answer:
    """`pue fit table.parquet --label …` with its defaults, its prior given or not, then `pue predict`.

    Accuracy is that of calling rows with a probability of one half or more; what the model says about itself is about
    its own threshold, so it is compared with the truth at that threshold.
    """
    recipe = Recipe(prior=problem.prior if given else "estimate", seed=problem.seed, progress=False)
    with tempfile.TemporaryDirectory() as folder:
        model = fit_source(open_source(_written(problem.train, Path(folder))), Roles(label=LABEL), recipe)
    p = np.asarray(model.probability(problem.test.frame), np.float64)
    return Answer(p, p >= 0.5, _said(model, problem), partial(_checked, model, p, problem))


def _written(part: Part, folder: Path) -> Path:
    path = folder / "table.parquet"
    part.frame.assign(**{LABEL: part.s.astype(int)}).to_parquet(path)
    return path


def _said(model: PUModel, problem: Problem) -> dict[str, Any]:
    """Prior, test of SCAR, drivers and estimated metrics: from the summary that the page shows."""
    summary = model.summary
    prior, scar = summary["prior"], summary["scar"] or {}
    values = summary["metrics"]["values"]
    return {
        "prior": prior["value"],
        "prior_low": prior["low"],
        "prior_high": prior["high"],
        "prior_level": prior["level"],
        "true_prior": problem.prior,
        "scar_p": scar.get("p_value"),
        "scar_rejected": scar.get("rejected"),
        "scar_or_fewer": scar.get("or_fewer"),
        "drivers": [[driver["name"], driver["difference"]] for driver in summary["drivers"][:NAMED]],
        "true_drivers": problem.drivers,
        "first_driver_is_right": _is_right(summary["drivers"], problem),
        "estimated": {name: [values[name][key] for key in ("value", "low", "high")] for name in JUDGED},
    }


def _is_right(named: list[dict[str, Any]], problem: Problem) -> bool | None:
    """Is the first driver a true one, with its sign? Of a column with two values either may be named."""
    if not (named and problem.drivers):
        return None
    name, sign = named[0]["name"], int(np.sign(named[0]["difference"]))
    column = name.partition("=")[0] + "="
    values = [other for other in problem.names if other.startswith(column)]
    reverse = [other for other in values if other != name] if len(values) == 2 else []
    return problem.drivers.get(name) == sign or any(problem.drivers.get(other) == -sign for other in reverse)


def _checked(model: PUModel, p: Floats, problem: Problem) -> dict[str, Any]:
    """What is true at the model's threshold, and what `pue evaluate` says about the test rows from their labels."""
    found: dict[str, Any] = {"threshold": model.threshold, "truth": judge(problem.test.y, p, p >= model.threshold)}
    with tempfile.TemporaryDirectory() as folder:
        try:
            said = evaluate_source(
                model, open_source(_written(problem.test, Path(folder))), seed=problem.seed
            ).estimated
        except InvalidInput as refusal:  # too few labels among the test rows
            return {**found, "evaluate_refused": str(refusal)}
    assert said is not None
    values = asdict(said)
    return {**found, "evaluated": {name: [values[name][key] for key in ("value", "low", "high")] for name in JUDGED}}


CORRECTIONS: dict[str, dict[str, Any]] = {
    "none": {"propensity": None},
    "auto": {"propensity": "auto"},
    "true": {"propensity": "true"},
    "auto-prior": {"propensity": "auto", "prior": "estimate"},
}
"""Prior given but in the last."""

OURS: dict[str, Method] = {
    **{
        f"{learner}/{correction}": partial(classifier, backbone=backbone, **options)
        for learner, backbone in BACKBONES.items()
        for correction, options in CORRECTIONS.items()
    },
    "fit/nothing": partial(command, given=False),
    "fit/prior": partial(command, given=True),
    "prior/estimate": estimated_prior,
}
