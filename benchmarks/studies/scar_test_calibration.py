"""How often `scar_test` cries wolf, and how often it sees a wolf.

    python benchmarks/studies/scar_test_calibration.py --data DATA_FOLDER --out scar_test.jsonl

False alarms: SCAR data sets of eight kinds (overlapping and separated Gaussians, mixtures, discrete tables, digits;
both scenarios; 60 to 400 labels), and MNIST. Power: MNIST with the paper's mix of labels. Each repetition appends a
line to `--out`; those that are there already are skipped, so a run can be stopped and continued. `plain` is the same
idea without the three changes that `pue.propensity.scar` explains.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from scipy.stats import binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pue.bench.datasets import digits, mnist
from pue.bench.datasets.labeled import LabeledSplit
from pue.bench.labeling import class_mix, scar
from pue.core.data import PUData, Scenario, as_matrix, population_rows
from pue.propensity.scar import scar_test

SINGLE, CASE_CONTROL = Scenario.SINGLE_SAMPLE, Scenario.CASE_CONTROL
PAPER = {0: 0.65, 2: 0.15, 4: 0.10, 6: 0.07, 8: 0.03}
MILD = {0: 0.30, 2: 0.25, 4: 0.20, 6: 0.15, 8: 0.10}

Sets = Callable[[np.random.Generator, str | None], tuple[PUData, float]]


def gaussians(
    n: int, prior: float, n_labeled: int, *, gap: float, clusters: int = 1, scenario: Scenario, apart: bool = False
) -> Sets:
    """Negatives at the origin, `clusters` of positives `gap` away; `apart` draws the labeled rows beside the table."""

    def draw(rng: np.random.Generator, _: str | None) -> tuple[PUData, float]:
        centers = 1.5 * rng.normal(size=(clusters, 5)) * (clusters > 1)
        centers[:, 0] = gap
        y = rng.random(n) < prior
        x = rng.normal(size=(n, 5)) + y[:, None] * centers[rng.integers(clusters, size=n)]
        if apart:
            extra = rng.normal(size=(n_labeled, 5)) + centers[rng.integers(clusters, size=n_labeled)]
            labels = torch.arange(n_labeled + n) < n_labeled
            return PUData(torch.from_numpy(np.concatenate([extra, x])), labels.int(), scenario), prior
        rows, classes = torch.from_numpy(x), torch.from_numpy(y).long()
        return scar(rows, classes, n_labeled=n_labeled, scenario=scenario, rng=rng)[0], prior

    return draw


def discrete(rng: np.random.Generator, _: str | None) -> tuple[PUData, float]:
    """Four columns with three levels each: hardly a row that is not repeated."""
    y = rng.random(1500) < 0.4
    x = rng.binomial(2, np.where(y[:, None], 0.75, 0.25), size=(1500, 4)).astype(float)
    return scar(torch.from_numpy(x), torch.from_numpy(y).long(), n_labeled=200, rng=rng)[0], 0.4


def images(
    source: Callable[[str | None], LabeledSplit],
    n_labeled: int,
    *,
    mix: dict[int, float] | None = None,
    scenario: Scenario = CASE_CONTROL,
    rows: int | None = None,
    wrong: float = 0.0,
) -> Sets:
    """Even digits among odd ones, all images or `rows` of them; the prior is theirs, plus `wrong`."""

    def draw(rng: np.random.Generator, folder: str | None) -> tuple[PUData, float]:
        split = source(folder)
        kept = torch.from_numpy(np.sort(rng.permutation(len(split.train_x))[:rows]))
        x, classes, y = split.train_x[kept], split.train_classes[kept], split.train_y[kept]
        prior = float(y.double().mean()) + wrong
        if mix is None:
            return scar(x, y, n_labeled=n_labeled, scenario=scenario, rng=rng)[0], prior
        return class_mix(x, classes, mix=mix, n_labeled=n_labeled, scenario=scenario, rng=rng)[0], prior

    return draw


def small_digits(_: str | None) -> LabeledSplit:
    return digits()


SCAR: dict[str, Sets] = {
    "overlapping, single sample": gaussians(1000, 0.3, 60, gap=1.5, scenario=SINGLE),
    "overlapping, case-control": gaussians(2000, 0.5, 200, gap=2, scenario=CASE_CONTROL, apart=True),
    "separated, single sample": gaussians(1000, 0.4, 150, gap=6, scenario=SINGLE),
    "separated, case-control copies": gaussians(1500, 0.3, 100, gap=6, scenario=CASE_CONTROL),
    "mixture, single sample": gaussians(1500, 0.5, 400, gap=3, clusters=5, scenario=SINGLE),
    "mixture, case-control": gaussians(2000, 0.2, 150, gap=6, clusters=5, scenario=CASE_CONTROL, apart=True),
    "discrete table": discrete,
    "digits": images(small_digits, 100, scenario=SINGLE),
}
MNIST: dict[str, Sets] = {
    "MNIST 5,000 rows, 200 labels, SCAR": images(mnist, 200, rows=5000),
    "MNIST, 500 labels, SCAR": images(mnist, 500),
    "MNIST, 500 labels, SCAR, prior + .05": images(mnist, 500, wrong=0.05),
    "MNIST, 500 labels, SCAR, prior + .10": images(mnist, 500, wrong=0.10),
    "MNIST, 500 labels, paper's mix": images(mnist, 500, mix=PAPER),
    "MNIST, 500 labels, paper's mix, prior - .20": images(mnist, 500, mix=PAPER, wrong=-0.20),
    "MNIST, 100 labels, paper's mix": images(mnist, 100, mix=PAPER),
    "MNIST, 500 labels, mild mix": images(mnist, 500, mix=MILD),
}


def plain(data: PUData, prior: float, rng: np.random.Generator, n_draws: int = 199) -> float:
    """p-value with the best π n rows of an in-sample score as positives and a two-sided KS statistic of the columns."""
    x, labeled = as_matrix(data.x).astype(float), data.labeled.numpy()
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(x, labeled)
    population = population_rows(data.labels, data.scenario).numpy()
    others = np.flatnonzero(population & ~labeled)
    wanted = max(0, round(prior * population.sum()) - int((population & labeled).sum()))
    best = others[np.argsort(-model.decision_function(x[others]), kind="stable")[:wanted]]
    positives = np.concatenate([np.flatnonzero(labeled), best])
    order = np.argsort(x[positives], axis=0, kind="stable")
    even = np.arange(1, len(positives) + 1)[:, None] / len(positives)

    def statistic(chosen: np.ndarray) -> float:
        mask = np.zeros(len(positives))
        mask[chosen] = 1 / len(chosen)
        return float(np.abs(mask[order].cumsum(axis=0) - even).max(axis=0).mean())

    n = int(labeled.sum())
    null = [statistic(rng.choice(len(positives), n, replace=False)) for _ in range(n_draws)]
    return (1 + sum(value >= statistic(np.arange(n)) for value in null)) / (1 + n_draws)


def run(kind: str, repetition: int, folder: str | None) -> dict[str, object]:
    torch.set_num_threads(1)
    rng = np.random.default_rng([repetition, 2024])
    data, prior = {**SCAR, **MNIST}[kind](rng, folder)
    start = time.perf_counter()
    result = scar_test(data, prior=prior, seed=repetition)
    seconds = time.perf_counter() - start
    return {
        "kind": kind,
        "repetition": repetition,
        "p": result.p_value,
        "statistic": result.statistic,
        "largest_prior": result.largest_prior,
        "seconds": seconds,
        "plain_p": plain(data, prior, rng) if kind in SCAR else None,
    }


def rate(rejected: list[bool]) -> str:
    """Share in percent with the exact 95 % interval."""
    interval = binomtest(sum(rejected), len(rejected)).proportion_ci()
    return f"{100 * np.mean(rejected):5.1f} ({100 * interval.low:4.1f}–{100 * interval.high:5.1f})"


def report(rows: list[dict[str, object]]) -> None:
    print(f"{'rejected at level 5 %, in %':46}{'n':>5}{'scar_test':>22}{'plain':>22}{'seconds':>9}")
    groups = {"all SCAR kinds but MNIST": list(SCAR), **{kind: [kind] for kind in [*SCAR, *MNIST]}}
    for name, kinds in groups.items():
        chosen = [row for row in rows if row["kind"] in kinds]
        if not chosen:
            continue
        ours = rate([row["p"] <= 0.05 for row in chosen])
        theirs = "" if chosen[0]["plain_p"] is None else rate([row["plain_p"] <= 0.05 for row in chosen])
        seconds = np.median([row["seconds"] for row in chosen])
        print(f"{name:46}{len(chosen):5}{ours:>22}{theirs:>22}{seconds:9.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds mnist/ (default: $PUE_DATA)")
    parser.add_argument("--out", type=Path, default=Path("scar_test.jsonl"))
    parser.add_argument("--sets", type=int, default=25, help="data sets of each of the eight SCAR kinds (default: 25)")
    parser.add_argument("--mnist", type=int, default=40, help="repetitions of each MNIST setting (default: 40)")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    done = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    jobs = {(kind, r) for kinds, n in ((SCAR, args.sets), (MNIST, args.mnist)) for kind in kinds for r in range(n)}
    missing = sorted(jobs - {(row["kind"], row["repetition"]) for row in done}, key=lambda job: (job[1], job[0]))
    results = Parallel(n_jobs=args.jobs, return_as="generator_unordered")(
        delayed(run)(kind, repetition, args.data) for kind, repetition in missing
    )
    for row in results:
        with args.out.open("a") as file:
            file.write(json.dumps(row) + "\n")
        done.append(row)
    report([row for row in done if (row["kind"], row["repetition"]) in jobs])


if __name__ == "__main__":
    main()
