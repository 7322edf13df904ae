"""The diagnosis: each part against what it is made of, and the words against the facts."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse

from pue.basis import Basis
from pue.core.data import PUData, Scenario
from pue.core.theory import weighting_gap_bound
from pue.diagnosis.diagnose import Diagnosis
from pue.diagnosis.diagnose import diagnose as diagnose_anything
from pue.diagnosis.drivers import RIDGE, _own_differences, find_drivers
from pue.errors import InvalidInput, UnknownName
from pue.judging.sensitivity import worst_case
from pue.persistence.model import load, save
from pue.priors import PriorEstimate
from pue.propensity import Constant, LabeledPropensity, Logistic, PropensityModel, clip_propensity
from pue.propensity.auto import Chosen
from pue.propensity.groups import ConstantModel
from pue.propensity.scar import scar_test

NAMES = ["size", "age", "noise"]


def diagnose(X: object, s: object, **options: object) -> Diagnosis:
    """With the propensity estimator that takes no time, unless a test names another."""
    return diagnose_anything(X, s, **{"propensity": "logistic", **options})  # type: ignore[arg-type]


def table(biased: bool, n: int = 600) -> tuple[np.ndarray, np.ndarray]:
    """Half of the rows are positive, 5 apart in "size"; biased labels prefer a high "age"."""
    rng = np.random.default_rng(0)
    y = np.arange(n) < n // 2
    x = rng.normal(size=(n, 3))
    x[:, 0] += 5 * y
    chance = 1 / (1 + np.exp(1 - 2 * x[:, 1])) if biased else 0.35
    return x, (y & (rng.random(n) < chance)).astype(int)


@pytest.fixture(scope="module")
def biased() -> Diagnosis:
    return diagnose(*table(True), prior=0.5, names=NAMES)


@pytest.fixture(scope="module")
def fair() -> Diagnosis:
    return diagnose(*table(False), prior=0.5, names=NAMES)


def test_the_parts_are_those_of_the_library(biased: Diagnosis) -> None:
    x, s = table(True)
    data = PUData(torch.from_numpy(x), torch.from_numpy(s))
    assert biased.scar is not None
    assert biased.propensity is not None
    assert biased.scar.p_value == scar_test(data, prior=0.5).p_value
    assert (biased.n_rows, biased.n_labeled, biased.scenario) == (600, int(s.sum()), Scenario.SINGLE_SAMPLE)
    plain = clip_propensity(biased.propensity)[1]
    assert biased.report is not None
    assert biased.report.effective_sample_size == plain.effective_sample_size
    assert biased.report.source == "Logistic"
    assert biased.unlabeled_propensity is not None
    assert len(biased.unlabeled_propensity) == 600 - s.sum()
    gap = weighting_gap_bound(1 / biased.propensity, torch.ones(int(s.sum())), 0.5)
    assert (biased.bounds[0].value, biased.bounds[0].rigorous) == (pytest.approx(gap), True)
    assert [bound.rigorous for bound in biased.bounds] == [True, True, True, False, False]


def test_a_bias_is_found_and_named(biased: Diagnosis) -> None:
    assert biased.scar is not None
    assert biased.scar.rejected
    assert biased.drivers[0].name == "age"
    assert biased.drivers[0].difference > 0.4
    assert {driver.name for driver in biased.drivers} < set(NAMES), "not what chance could have made"
    assert "The labels are biased" in biased.recommendation
    assert "label positives with low age" in biased.recommendation


@pytest.mark.parametrize("propensity", [None, "logistic", "auto"])
def test_a_column_that_only_goes_along_with_the_driver_is_not_named(propensity: str | None) -> None:
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.5
    x = rng.normal(size=(2000, 3))
    x[:, 0] += 4 * y
    x[:, 2] = 0.8 * x[:, 1] + 0.6 * x[:, 2]
    s = y & (rng.random(2000) < 1 / (1 + np.exp(1 + 2 * x[:, 1])))
    found = diagnose(x, s, prior=0.5, propensity=propensity, names=["size", "age", "tenure"])
    drivers = {driver.name: driver.difference for driver in found.drivers}
    assert found.drivers[0].name == "age"
    assert drivers["age"] < -0.3
    assert abs(drivers.get("tenure", 0.0)) < 0.35 * abs(drivers["age"])


def test_a_fair_labeling_needs_no_weights(fair: Diagnosis) -> None:
    assert fair.scar is not None
    assert not fair.scar.rejected
    assert fair.drivers == ()
    assert "Drivers" not in fair.summary()
    assert 'start with a plain method such as "nnpu"' in fair.recommendation
    assert "Next, label" not in fair.recommendation


def test_doubt_widens_the_recall(biased: Diagnosis) -> None:
    assert [gamma for gamma, _, _ in biased.recall] == [1.0, 1.25, 1.5, 2.0]
    _, low, high = biased.recall[0]
    assert low == pytest.approx(high)
    for (_, a, b), (_, c, d) in zip(biased.recall, biased.recall[1:], strict=False):
        assert 0 <= c <= a <= b <= d <= 1


def test_the_recall_is_the_worst_case_of_a_mean() -> None:
    # With a constant propensity it is the plain share of labeled rows among the estimated positives, and its range.
    found = diagnose(*table(False), prior=0.5, propensity=Constant(), gammas=[1.0, 3.0])
    assert found.propensity is not None
    n = found.n_labeled
    hits = round(found.recall[0][1] * n)
    assert found.recall[0][1] == pytest.approx(hits / n)
    h = (torch.arange(n) < hits).double()
    assert found.recall[1][1:] == pytest.approx(worst_case(h, found.propensity, 3.0))


def test_weights_that_rest_on_few_rows_are_not_recommended(biased: Diagnosis) -> None:
    assert biased.report is not None
    poor = dataclasses.replace(biased, report=dataclasses.replace(biased.report, effective_sample_size=5.0))
    rich = dataclasses.replace(biased, report=dataclasses.replace(biased.report, effective_sample_size=90.0))
    assert not poor.healthy
    assert "more harm than good" in poor.recommendation
    assert rich.healthy
    assert "let the method weight by them" in rich.recommendation
    assert not dataclasses.replace(rich, memorized=True).healthy


def test_a_model_that_knows_its_rows_by_heart_raises_the_alarm() -> None:
    class Memory:
        def fit(self, data: PUData, *, prior: float, seed: int = 0) -> object:
            class Model(PropensityModel):
                @property
                def held_out(self) -> torch.Tensor:
                    return torch.full((data.n_labeled,), 0.1, dtype=torch.float64)

                def __call__(self, x: torch.Tensor) -> torch.Tensor:
                    return torch.full((x.shape[0],), 0.9, dtype=torch.float64)

            return Model()

    found = diagnose(*table(False), prior=0.5, propensity=Memory())  # type: ignore[arg-type]
    assert found.memorized
    assert "knows its rows by heart" in str(found)
    assert not diagnose(*table(False), prior=0.5, propensity=Logistic()).memorized


def test_the_summary_says_it_all(biased: Diagnosis) -> None:
    text = str(biased)
    assert text == biased.summary()
    for word in ("Data", "Prior", "SCAR", "Drivers", "Weights", "Recall", "Bounds", "Recommendation"):
        assert f"\n{word}" in f"\n{text}"
    assert "0.5 (given)" in text
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize("scenario", list(Scenario))
def test_an_estimated_prior_comes_with_its_interval(scenario: Scenario) -> None:
    found = diagnose(*table(False), scenario=scenario.value)
    assert found.prior.low <= found.prior.value <= found.prior.high
    assert found.prior.low < found.prior.high
    assert "The prior is an estimate" in found.recommendation
    assert diagnose(*table(False), prior="elkan_noto", propensity=None).prior.method == "elkan_noto"


def test_frames_sparse_tables_and_images_are_taken() -> None:
    x, s = table(True)
    frame = diagnose(pd.DataFrame(x, columns=NAMES), pd.Series(s), prior=0.5)
    assert frame.drivers[0].name == "age"
    thin = diagnose(sparse.csr_matrix(x), s, prior=0.5)
    assert thin.drivers[0].name == "1"
    assert thin.drivers[0].difference == pytest.approx(frame.drivers[0].difference, abs=0.25)  # not its own part alone
    pixels = np.clip(40 * x + 60, 0, 255).astype(np.uint8).reshape(len(x), 1, 1, 3)
    image = diagnose(pixels, s, prior=0.5)
    assert image.drivers == ()
    assert len(image.recall) == 4
    assert "unlike those labeled so far" in image.recommendation


def test_without_propensities_there_are_no_weights_and_no_bounds() -> None:
    found = diagnose(*table(True), prior=0.5, propensity=None)
    assert found.propensity is None
    assert found.bounds == found.recall == ()
    assert "Weights" not in str(found)
    assert "estimate propensities and look" in found.recommendation


def test_few_labels_are_said_and_not_judged() -> None:
    x, s = table(True)
    s[np.flatnonzero(s)[15:]] = 0
    found = diagnose(x, s, prior=0.5)
    assert found.scar is None
    assert found.drivers == ()
    assert "too few rows to test" in str(found)
    assert "Label at least 20 rows" in found.recommendation


def test_the_plot_has_four_panels_and_is_written(biased: Diagnosis, tmp_path: Path) -> None:
    figure = biased.plot(tmp_path / "diagnosis.png")
    assert len(figure.axes) == 4
    assert (tmp_path / "diagnosis.png").stat().st_size > 10_000
    x, s = table(True)
    s[np.flatnonzero(s)[15:]] = 0
    assert len(diagnose(x, s, prior=0.5, propensity=None).plot().axes) == 4


def test_a_seed_decides_everything(biased: Diagnosis) -> None:
    assert str(diagnose(*table(True), prior=0.5, names=NAMES)) == str(biased)


def test_what_cannot_be_used_is_refused() -> None:
    x, s = table(True)
    with pytest.raises(InvalidInput, match="one name for each of the 3 columns; got 1"):
        diagnose(x, s, names=["size"])
    with pytest.raises(InvalidInput, match=r"prior must lie in \(0, 1\)"):
        diagnose(x, s, prior=1.5)
    with pytest.raises(UnknownName, match=r"unknown propensity 'logistics'\. Did you mean 'logistic'"):
        diagnose(x, s, prior=0.5, propensity="logistics")
    with pytest.raises(UnknownName, match="unknown prior"):
        diagnose(x, s, prior="nonsense")
    x[0, 1] = np.nan
    with pytest.raises(InvalidInput, match=r"NaN or infinity in column\(s\) age"):
        diagnose(x, s, prior=0.5, names=NAMES)


def test_a_test_that_the_propensities_rest_on_is_not_made_again(tmp_path: Path) -> None:
    x, s = (torch.from_numpy(part) for part in table(biased=True))
    data = PUData(x, s)
    test = scar_test(data, prior=0.5, n_draws=99, seed=3)
    model = Chosen(ConstantModel(0.3), (), test.p_value, test)
    e, report = clip_propensity(torch.full((data.n_labeled,), 0.3, dtype=torch.float64))
    basis = Basis(PriorEstimate.given(0.5), LabeledPropensity(e, report, model))
    assert diagnose(data, None, basis=basis).scar is test
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.test, again.p_value, again.model) == (None, test.p_value, model.model), "it is of the moment"


def test_a_wide_range_of_the_prior_asks_for_an_audit_and_names_its_price(biased):
    wide = dataclasses.replace(
        biased, prior=PriorEstimate(0.4, 0.2, 0.6, 0.95, "several clues", "a table like those", 0)
    )
    unlabeled = 1 - wide.n_labeled / wide.n_rows
    share = (0.4 - (1 - unlabeled)) / unlabeled
    half = 1.96 * unlabeled * (share * (1 - share) / 100 + 1e-4) ** 0.5
    assert "is an estimate and may lie anywhere between 0.20 and 0.60" in wide.recommendation
    assert f"about ±{half:.2f}, whatever the labels' bias: pue audit plan" in wide.recommendation
    assert "audit" not in biased.recommendation


def test_families_of_images_are_told_and_only_those() -> None:
    generator = torch.Generator().manual_seed(0)
    people = torch.rand(120, 1, 1, 8, 8, generator=generator)
    scans = (people + 0.02 * torch.rand(120, 4, 1, 8, 8, generator=generator)).flatten(0, 1)
    s = (torch.arange(480) % 5 == 0).int()
    found = diagnose(scans.numpy(), s.numpy(), prior=0.5, propensity=None)
    assert found.relatives == pytest.approx(1, abs=0.02)
    assert "Hold whole families out" in found.recommendation
    assert "near-identical" in found.summary()
    strangers = torch.rand(480, 1, 8, 8, generator=generator)
    assert diagnose(strangers.numpy(), s.numpy(), prior=0.5, propensity=None).relatives is None


def test_a_rejection_at_an_estimated_prior_says_no_more_than_it_can_tell(biased: Diagnosis) -> None:
    assert biased.scar is not None
    largest = biased.scar.largest_prior
    assert not biased.or_fewer, "a prior that was given leaves one reading"
    for lowest, sure in ((largest - 0.01, False), (largest, False), (largest + 0.01, True)):
        guess = dataclasses.replace(biased.prior, low=lowest, method="guess")
        found = dataclasses.replace(biased, prior=guess, scar=dataclasses.replace(biased.scar, lowest=lowest))
        assert found.scar is not None
        assert found.scar.speaks
        assert (found.scar.rejected, found.or_fewer) == (sure, not sure)
        assert ("or there are fewer positives than estimated" in found.recommendation) == (not sure)
        assert ("fewer positives than estimated would look the same" in found.verdict) == (not sure)
        assert ("at the estimated prior" in str(found.scar)) == (not sure)


def test_an_estimated_prior_tells_the_test_how_low_it_may_be() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(400) < 200
    x, s = rng.normal(size=(400, 2)) + 3 * y[:, None], y & (rng.random(400) < 0.4)
    guess = PriorEstimate(0.5, 0.3, 0.7, 0.95, "guess", "nothing", 0)
    for prior, lowest in ((guess, 0.3), (0.5, None)):
        found = diagnose(x, s, prior=prior, propensity=None).scar
        assert found is not None
        assert found.lowest == lowest


def test_a_column_is_named_where_it_is_clear_beyond_chance() -> None:
    """Twin: the regression of `found` on standardised columns, its error by hand. Labels at random name a column in few
    of many tables; columns that repeat each other are not told apart."""
    named = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        y = np.arange(400) < 200
        x = rng.normal(size=(400, 3)) + 3 * y[:, None]
        s = y & (rng.random(400) < 0.3)
        data = PUData(torch.from_numpy(x), torch.from_numpy(s.astype(np.int64)))
        named += len(list(find_drivers(data, torch.from_numpy(y).double(), list("abc"))))
        if seed == 0:
            rows = y | s
            z = (x[rows] - x[y].mean(0)) / x[y].std(0)
            inverse = np.linalg.inv(np.cov(z.T, bias=True) + RIDGE * np.eye(3))
            own, error = _own_differences(data, torch.from_numpy(y), None)
            assert own == pytest.approx(inverse @ (z[s[rows]].mean(0) - z.mean(0)))
            assert error == pytest.approx([math.sqrt(inverse[k, k]) for k in range(3)])
    assert named <= 0.05 * 120 + 3 * math.sqrt(0.05 * 120)
