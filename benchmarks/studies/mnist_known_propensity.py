"""nnPU against nnPU with the true propensities (nnPUe') on MNIST with the paper's biased labels.

    python benchmarks/studies/mnist_known_propensity.py --data DATA_FOLDER

Case-control: 2,500 labeled even digits in the mix .65/.15/.10/.07/.03 over 0, 2, 4, 6, 8 beside all 60,000 images
unlabeled; the prior of the training set; last epoch, no selection. Every run is one process with one thread. The
default network is a small MLP without batch norm; `--backbone mlp` takes the paper's 6-layer MLP.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from joblib import Parallel, delayed

from pue import PUClassifier, evaluate
from pue.bench.datasets import mnist
from pue.bench.labeling import class_mix

MIX = {0: 0.65, 2: 0.15, 4: 0.10, 6: 0.07, 8: 0.03}


def run(seed: int, known: bool, folder: str | None, options: dict[str, object]) -> dict[str, float]:
    torch.set_num_threads(1)
    split = mnist(folder)
    data, truth = class_mix(
        split.train_x, split.train_classes, mix=MIX, n_labeled=2500, rng=np.random.default_rng(seed)
    )
    start = time.perf_counter()
    classifier = PUClassifier(
        "nnpu",
        prior=float(split.train_y.double().mean()),
        scenario="case_control",
        random_state=seed,
        progress=False,
        **options,
    )
    classifier.fit(data.x, data.labels, propensity=truth.labeled_propensity(data) if known else None)
    scores = torch.from_numpy(classifier.decision_function(split.test_x))
    return {**evaluate(split.test_y, scores).as_dict(), "seconds": time.perf_counter() - start}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds mnist/ (default: $PUE_DATA)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--backbone", default="tabular", help="a name in pue.BACKBONES (default: tabular)")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    options: dict[str, object] = {"backbone": args.backbone, "epochs": args.epochs, "lr": 1e-3, "weight_decay": 5e-3}
    cases = [(seed, known) for known in (False, True) for seed in range(args.seeds)]
    results = Parallel(n_jobs=args.jobs)(delayed(run)(seed, known, args.data, options) for seed, known in cases)
    print(f"{args.backbone}, {args.epochs} epochs, n = {args.seeds} seeds, mean ± sd")
    print(f"{'':8}{'accuracy %':>16}{'F1 %':>16}{'AUC %':>16}{'seconds':>10}")
    for known, name in ((False, "nnPU"), (True, "nnPUe'")):
        rows = [result for (_, k), result in zip(cases, results, strict=True) if k == known]
        cells = [
            f"{100 * np.mean(v):8.2f} ± {100 * np.std(v, ddof=1):5.2f}" if len(v) > 1 else f"{100 * v[0]:16.2f}"
            for v in ([row[metric] for row in rows] for metric in ("accuracy", "f1", "auc"))
        ]
        print(f"{name:8}{''.join(f'{cell:>16}' for cell in cells)}{np.mean([row['seconds'] for row in rows]):10.1f}")


if __name__ == "__main__":
    main()
