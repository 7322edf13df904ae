"""Every estimator of the prior on MNIST, with the paper's biased labels and with unbiased ones.

    python examples/mnist_priors.py --data DATA_FOLDER

Case-control: 2,500 labeled even digits in the mix .65/.15/.10/.07/.03 over 0, 2, 4, 6, 8 (biased) or .2 each (SCAR)
beside all 60,000 images unlabeled, of which 49.15 % are even. All estimators get the same evidence: q of a small CNN,
cross-fitted over three folds, and 50 principal components of the pixels.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import torch
from torch import nn

from pue.backbones import InputSpec
from pue.data import PUData, select
from pue.datasets import mnist
from pue.errors import PueWarning
from pue.folds import content_folds
from pue.labeling import class_mix
from pue.priors import PRIORS, Evidence, evidence
from pue.propensity import CrossFit, Network
from pue.training import Batching, Training

MIXES = {"biased": (0.65, 0.15, 0.10, 0.07, 0.03), "SCAR": (0.2, 0.2, 0.2, 0.2, 0.2)}
FOLDS = 3


def small_cnn(spec: InputSpec) -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(spec.shape[0], 16, 5, 2, 2, bias=False), nn.BatchNorm2d(16), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten()),
        *(nn.Linear(32 * 49, 64, bias=False), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 1)),
    )


def network_evidence(data: PUData, seed: int) -> Evidence:
    """q of every row from the network of its fold, which has seen neither the row nor its copy."""
    training = Training(epochs=4, batching=Batching(512, "pooled"), lr=2e-3, weight_decay=1e-4)
    network = Network(alpha=0.0, backbone=small_cnn, training=training, odds=False)
    fitted = CrossFit(network, FOLDS, rescale=False).fit(data, prior=0.5, seed=seed)
    fold = content_folds(data.x, data.labels, FOLDS, seed=seed)
    q = torch.empty(data.n_rows, dtype=torch.float64)
    for k, model in enumerate(fitted.models):
        held = torch.from_numpy(fold == k)
        q[held] = model(select(data.x, held))
    return evidence(data, q=q, fold=fold, seed=seed)


def run(mix: str, seed: int, folder: str | None) -> dict[str, float]:
    split = mnist(folder)
    shares = dict(zip((0, 2, 4, 6, 8), MIXES[mix], strict=True))
    rng = np.random.default_rng(seed)
    data, _ = class_mix(split.train_x, split.train_classes, mix=shares, n_labeled=2500, rng=rng)
    rows = network_evidence(data, seed)
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
