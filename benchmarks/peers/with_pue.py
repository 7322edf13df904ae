"""pue: the methods its peers have, the same way; and what it recommends for biased labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from problems import Fitted, Method, Problem
from same import BATCH, EPOCHS, six_layers
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from pue import PUClassifier, PUWrapper
from pue.app.fit import fit_model
from pue.app.recipe import Recipe
from pue.app.rows import Rows
from pue.bench.presets import find_preset
from pue.core.data import PUData, Scenario
from pue.priors import elkan_noto
from pue.priors.elkan_noto import scores_only
from pue.propensity import Constant, CrossFit, Logistic
from pue.propensity.pool import label_probability


def classifier(make: Callable[[Problem, int], Any], *, images: bool = False) -> Method:
    def fit(problem: Problem, seed: int) -> Fitted:
        model = make(problem, seed).fit(problem.x, problem.s)
        return Fitted(model.predict, model.decision_function)

    return Method(fit, images)


def common(problem: Problem, seed: int) -> dict[str, Any]:
    return {"prior": problem.prior, "scenario": problem.scenario, "random_state": seed}


def same_network(problem: Problem, seed: int, **options: Any) -> PUClassifier:
    """As many rows of each kind in a step, and the same optimizer, as in pu-toolbox."""
    return PUClassifier(
        "nnpu",
        backbone=lambda spec: six_layers(spec.size),
        epochs=EPOCHS,
        batch_size=2 * BATCH,
        labeled_per_batch=min(BATCH, int(problem.s.sum())),
        lr=1e-3,
        weight_decay=0.0,
        schedule="constant",
        **common(problem, seed),
        **options,
    )


def linear(problem: Problem, seed: int, **options: Any) -> PUClassifier:
    return PUClassifier("nnpu", backbone="linear", **options, **common(problem, seed))


def digits(method: str, propensity: str | None) -> Method:
    """The preset `fast` of `pue bench mnist`."""
    settings = find_preset("mnist", "fast").settings_of(method)

    def make(problem: Problem, seed: int) -> PUClassifier:
        return PUClassifier(
            method,
            propensity=propensity,
            backbone=settings.backbone,
            progress=False,
            **settings.classifier,
            **common(problem, seed),
        )

    return classifier(make, images=True)


def network(method: str, propensity: str | None, **options: Any) -> Method:
    """Defaults."""
    return classifier(
        lambda problem, seed: PUClassifier(method, propensity=propensity, **common(problem, seed), **options)
    )


def drawn(propensity: str) -> Method:
    """The network that is also pu-toolbox's, labeled rows drawn by their weight."""
    options = {"propensity": propensity, "labeled_rows": "drawn"}
    return classifier(lambda problem, seed: same_network(problem, seed, **options))


def wrapped(base: Callable[[int], Any]) -> Method:
    return classifier(lambda problem, seed: PUWrapper(base(seed), propensity="auto", **common(problem, seed)))


def elkan_noto_of(problem: Problem, seed: int) -> Fitted:
    """P(y = 1 | x) = r(x) / c: a regression for r, c from three more whose held-out rows say what the prior is.

    pue has Elkan and Noto's prior, but no classifier of that name: these are its parts, put together.
    """
    data = _data(problem)
    prior = elkan_noto(data, folds=3)
    return _divided(Logistic().fit(data, prior=prior), data, prior)


def elkan_noto_of_two(problem: Problem, seed: int) -> Fitted:
    """Two regressions, each of one half of the rows: their mean is r, and c is what one says of the other's rows."""
    data = _data(problem)
    crossed = CrossFit(Logistic(), 2, rescale=False).fit(data, prior=0.5, seed=seed)
    q = label_probability(crossed.out_of_fold(data.x), data.scenario)
    return _divided(crossed, data, elkan_noto(scores_only(data, q, crossed.fold)))


def tool(problem: Problem, seed: int) -> Fitted:
    """`pue fit` with the known prior and a threshold for accuracy: propensities, diagnosis, training, calibration."""
    recipe = Recipe(prior=problem.prior, scenario=problem.scenario, threshold="half", seed=seed, progress=False)
    model = fit_model(Rows(_data(problem), None, None), recipe)
    return Fitted(lambda x: model.probabilities(x) >= 0.5, model.probabilities)


def _data(problem: Problem) -> PUData:
    x = torch.from_numpy(problem.x)
    return PUData(x.flatten(1), torch.from_numpy(problem.s), Scenario.parse(problem.scenario))


def _divided(rate: Any, data: PUData, prior: float) -> Fitted:
    c = Constant().fit(data, prior=prior).frequency

    def scores(x: Any) -> Any:
        return rate(torch.from_numpy(x).flatten(1)).numpy() / c

    return Fitted(lambda x: scores(x) >= 0.5, scores)


METHODS = {
    "nnPU, 6 layers": classifier(same_network),
    "nnPU, linear": classifier(linear),
    "nnPU, linear, batches of 4,096": classifier(lambda p, seed: linear(p, seed, batch_size=4096, lr=1e-2)),
    "Elkan-Noto": Method(elkan_noto_of, images=True),
    "Elkan-Noto, 2 folds": Method(elkan_noto_of_two, images=True),
    "nnPU, preset fast": digits("nnpu", None),
    "nnPUe, preset fast": digits("nnpu", "auto"),
    "Dist-PUe, preset fast": digits("distpu", "auto"),
    "P-vs-U, preset fast": digits("quantile", None),
    "blend, auto": network("nnpu", "auto", backbone="blend"),
    "forest, auto": network("nnpu", "auto", backbone="forest"),
    "boosting, auto": network("nnpu", "auto", backbone="boosting"),
    "nnPU": network("nnpu", None),
    "nnPUe": network("nnpu", "auto"),
    "nnPUe, SAR-EM": network("nnpu", "sarem", labeled_rows="drawn"),
    "nnPUe, SAR-EM, 6 layers": drawn("sarem"),
    "nnPUe, double logistic": network("nnpu", "double_logistic", labeled_rows="drawn"),
    "nnPUe, double logistic, 6 layers": drawn("double_logistic"),
    "Dist-PUe": network("distpu", "auto"),
    "P-vs-U": network("quantile", None),
    "PUWrapper, logistic, auto": wrapped(lambda seed: LogisticRegression(max_iter=1000)),
    "PUWrapper, boosting, auto": wrapped(lambda seed: HistGradientBoostingClassifier(random_state=seed)),
    "pue fit": Method(tool),
}
