"""A network, a blend, a forest and boosting on the same rows: processor time as ratios of one run, and accuracy.

    python benchmarks/trees.py                     # times at 5,000 and 50,000 rows x 20, accuracy on six tables
    python benchmarks/trees.py --seeds 2 --rows 5000

Labels are unbiased (a quarter of the positives) and the true prior is given, so that nothing but the learner differs.
The sides run in turn, after one fit of each that does not count; a ratio is that of one turn's two times.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np
import torch
from measure import cpu_seconds, pairwise_ratios
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.model_selection import train_test_split

from pue import PUClassifier

LEARNERS = ("auto", "blend", "forest", "boosting")
Rows = tuple[NDArray[np.float64], NDArray[np.bool_]]


def generated(n: int, *, separation: float = 1.0, seed: int = 7) -> Rows:
    x, y = make_classification(
        n, 20, n_informative=8, n_redundant=4, n_clusters_per_class=3, weights=[0.6], flip_y=0.02,
        class_sep=separation, random_state=seed,
    )  # fmt: skip
    return x, y == 1


def tables() -> Iterator[tuple[str, Rows]]:
    cancer, digits = load_breast_cancer(), load_digits()
    yield "breast cancer", (cancer.data, cancer.target == 0)
    yield "digits, even", (digits.data, digits.target % 2 == 0)
    yield "digits, low", (digits.data, digits.target < 5)
    yield "generated, 5,000 rows", generated(5_000)
    yield "generated, close", generated(5_000, separation=0.6, seed=8)
    yield "generated, 50,000 rows", generated(50_000)


def labels(y: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    return (y & (np.random.default_rng(seed).random(len(y)) < 0.25)).astype(np.int64)


def fitted(learner: str, x: NDArray[np.float64], y: NDArray[np.bool_], seed: int) -> PUClassifier:
    classifier = PUClassifier(prior=float(y.mean()), backbone=learner, random_state=seed, progress=False)
    return classifier.fit(x, labels(y, seed))


def times(n: int, repeats: int) -> None:
    x, y = generated(n)
    seconds: dict[str, list[float]] = {learner: [] for learner in LEARNERS}
    for turn in range(repeats + 1):
        for learner in LEARNERS if turn % 2 else LEARNERS[::-1]:
            seconds[learner].append(cpu_seconds(lambda own=learner: lambda: fitted(own, x, y, 0)))
    for learner in LEARNERS[1:]:
        ratios = pairwise_ratios(seconds[learner][1:], seconds["auto"][1:])
        low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        fastest = f"{min(seconds[learner]):.2f} s / {min(seconds['auto']):.2f} s"
        print(f"| {n:,} × 20 | {learner} | {middle:.3f} | {low:.3f} – {high:.3f} | {repeats} | {fastest} |", flush=True)


def accuracies(name: str, rows: Rows, seeds: int) -> None:
    found = np.zeros((seeds, len(LEARNERS)))
    for seed in range(seeds):
        x, new, y, truth = train_test_split(*rows, test_size=0.3, stratify=rows[1], random_state=seed)
        for place, learner in enumerate(LEARNERS):
            found[seed, place] = 100 * np.mean(fitted(learner, x, y, seed).predict(new) == truth)
    spread = found.std(axis=0, ddof=min(1, seeds - 1))
    cells = (f"{mean:.1f} ± {sd:.1f}" for mean, sd in zip(found.mean(axis=0), spread, strict=True))
    print(f"| {name} | {' | '.join(cells)} | {seeds} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[5_000, 50_000], help="of the generated tables timed")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print("| rows | learner | time / network's | quartiles | n | fastest |\n| --- | --- | --- | --- | --- | --- |")
    for n in args.rows:
        times(n, args.repeats)
    print("\n| table | network | blend | forest | boosting | seeds |\n| --- | --- | --- | --- | --- | --- |")
    for name, rows in tables():
        accuracies(name, rows, args.seeds)


if __name__ == "__main__":
    main()
