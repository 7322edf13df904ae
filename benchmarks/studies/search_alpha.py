"""Search α_e, the strength of the paper's propensity regulariser, on digits with biased labels: without a negative.

    python benchmarks/studies/search_alpha.py --trials 20

130 labeled even digits in the mix .65/.15/.10/.07/.03 over 0, 2, 4, 6, 8 beside the training set. A fifth of the rows
judges all trials by the PU risk, weighted by one reference propensity, a logistic regression: no trial is judged by the
ê of its own network. (Only 26 labeled rows judge: proxy accuracy would move in steps of four points, and often not at
all.) Then the best setting is trained on all rows.
The study is a file: interrupt the search and start the same command again, and it goes on where it was; start it with
more trials, and it adds them. The test accuracy at the end is for the reader; the search has not seen it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from pue import PUClassifier, evaluate
from pue.bench.datasets import digits
from pue.bench.labeling import class_mix
from pue.estimators.search import search
from pue.propensity.network import Network

if TYPE_CHECKING:
    import optuna

MIX = {0: 0.65, 2: 0.15, 4: 0.10, 6: 0.07, 8: 0.03}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--storage", type=Path, default=Path("search_alpha.db"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    split = digits(seed=args.seed)
    data, _ = class_mix(
        split.train_x, split.train_classes, mix=MIX, n_labeled=130, rng=np.random.default_rng(args.seed)
    )
    prior = float(split.train_y.double().mean())

    def classifier(alpha: float) -> PUClassifier:
        propensity = Network(alpha=alpha)
        return PUClassifier("nnpu", propensity=propensity, prior=prior, scenario="case_control", random_state=args.seed)

    def make(trial: optuna.Trial) -> PUClassifier:
        return classifier(trial.suggest_float("alpha", 0.0, 20.0))

    result = search(
        make,
        data.x,
        data.labels,
        n_trials=args.trials,
        criterion="risk",
        reference="logistic",
        prior=prior,
        scenario="case_control",
        storage=args.storage,
        name=f"digits-{args.seed}",
        seed=args.seed,
    )
    values = sorted((trial.value, trial.params["alpha"]) for trial in result.study.trials if trial.value is not None)
    print(f"{len(values)} trials; held-out risk {-values[-1][0]:.3f} to {-values[0][0]:.3f}")
    for name, alpha in (("worst", values[0][1]), ("default", Network().alpha), ("found", result.best_params["alpha"])):
        chosen = classifier(alpha).fit(data.x, data.labels)
        scores = torch.from_numpy(chosen.decision_function(split.test_x))
        print(f"{name:8} alpha {alpha:5.2f}  test accuracy {100 * evaluate(split.test_y, scores).accuracy:.1f} %")


if __name__ == "__main__":
    main()
