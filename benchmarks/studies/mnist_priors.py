"""Every estimator of the prior on MNIST, with the paper's biased labels and with unbiased ones.

    python benchmarks/studies/mnist_priors.py --data DATA_FOLDER

Case-control: 2,500 labeled even digits in the mix .65/.15/.10/.07/.03 over 0, 2, 4, 6, 8 (biased) or .2 each (SCAR)
beside all 60,000 images unlabeled, of which 49.15 % are even. All estimators get the library's own evidence for images:
q of a small network, cross-fitted over three folds, and 50 principal components of the pixels.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch

from pue.bench.datasets import mnist
from pue.bench.labeling import class_mix
from pue.errors import PueWarning
from pue.priors import PRIORS, evidence

MIXES = {"biased": (0.65, 0.15, 0.10, 0.07, 0.03), "SCAR": (0.2, 0.2, 0.2, 0.2, 0.2)}


def run(mix: str, seed: int, folder: str | None) -> dict[str, float]:
    split = mnist(folder)
    shares = dict(zip((0, 2, 4, 6, 8), MIXES[mix], strict=True))
    rng = np.random.default_rng(seed)
    data, _ = class_mix(split.train_x, split.train_classes, mix=shares, n_labeled=2500, rng=rng)
    rows = evidence(data, seed=seed)
    return {name: estimator(rows) for name, estimator in PRIORS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds mnist/ (default: $PUE_DATA)")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--mix", choices=list(MIXES), nargs="*", default=list(MIXES))
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", PueWarning)
    for mix in args.mix:
        found = []
        for seed in range(args.seeds):
            start = time.perf_counter()
            found.append(run(mix, seed, args.data))
            shown = "  ".join(f"{name} {value:.3f}" for name, value in found[-1].items())
            print(f"{mix} {seed}: {shown}  ({time.perf_counter() - start:.0f} s)", flush=True)
        print(f"\n{mix}, n = {args.seeds} seeds, mean ± sd")
        for name in PRIORS:
            values = np.array([one[name] for one in found])
            print(f"{name:20}{values.mean():.3f} ± {values.std(ddof=1) if len(values) > 1 else 0:.3f}")
        print(flush=True)


if __name__ == "__main__":
    main()
