"""How often does the interval of `estimate_prior` hold the true prior? Small Gaussian samples, many times.

    python benchmarks/studies/prior_coverage.py

2,000 rows in a plane, 40 % positives in two clusters, 200 labels: one half of them for each cluster (SCAR) or 6/7 and
1/7 (biased). `gap` is the distance of the clusters from the origin; the negatives sit at (−gap, −gap), and within
clusters the standard deviation is 0.7. At gap 1.5 the classes touch.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import torch

from pue.bench.labeling import class_mix
from pue.core.data import PUData, Scenario
from pue.errors import PueWarning
from pue.priors import estimate_prior

PRIOR, ROWS, LABELED = 0.4, 2000, 200
MIXES = {"SCAR": {1: 1 / 2, 2: 1 / 2}, "biased": {1: 6 / 7, 2: 1 / 7}}
CASES = [
    ("bbe", "SCAR", "case_control", 3.0),
    ("bbe", "SCAR", "single_sample", 3.0),
    ("bbe", "SCAR", "case_control", 1.5),
    ("clustered", "SCAR", "case_control", 3.0),
    ("clustered", "biased", "case_control", 3.0),
    ("clustered", "biased", "single_sample", 3.0),
    ("clustered", "biased", "case_control", 1.5),
    ("bbe", "biased", "case_control", 3.0),
]


def sample(labels: str, scenario: str, gap: float, seed: int) -> PUData:
    rng = np.random.default_rng(seed)
    centers = gap * np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0]])
    classes = rng.choice(3, ROWS, p=[1 - PRIOR, PRIOR / 2, PRIOR / 2])
    x = torch.from_numpy(centers[classes] + 0.7 * rng.normal(size=(ROWS, 2)))
    mix = MIXES[labels]
    return class_mix(
        x, torch.from_numpy(classes), mix=mix, n_labeled=LABELED, scenario=Scenario.parse(scenario), rng=rng
    )[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=50)
    parser.add_argument("--first", type=int, default=1000, help="seed of the first sample")
    parser.add_argument("--level", type=float, default=0.99, help="nominal level of the interval")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", PueWarning)
    print("| method | labels | scenario | gap | mean ± sd | covered | mean width |\n|---|---|---|---|---|---|---|")
    for method, labels, scenario, gap in CASES:
        found = [
            estimate_prior(sample(labels, scenario, gap, args.first + seed), method=method, level=args.level, seed=seed)
            for seed in range(args.repeats)
        ]
        values = np.array([one.value for one in found])
        covered = sum(one.low <= PRIOR <= one.high for one in found)
        width = np.mean([one.high - one.low for one in found])
        cells = (method, labels, scenario, f"{gap:g}", f"{values.mean():.3f} ± {values.std(ddof=1):.3f}")
        print(f"| {' | '.join(cells)} | {covered} of {len(found)} | {width:.3f} |", flush=True)


if __name__ == "__main__":
    main()
