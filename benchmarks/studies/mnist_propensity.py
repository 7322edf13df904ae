"""Estimated propensities on MNIST with the paper's biased labels: are the weights right, and what are they worth?

    python benchmarks/studies/mnist_propensity.py gain --data DATA_FOLDER --out runs.jsonl
    python benchmarks/studies/mnist_propensity.py table --data DATA_FOLDER --out runs.jsonl
    python benchmarks/studies/mnist_propensity.py longer --data DATA_FOLDER --out runs.jsonl
    python benchmarks/studies/mnist_propensity.py show --out runs.jsonl [--picture estimators.png]

`gain`: nnPU and Dist-PU without propensities, with the library's default estimate and with the true ones, biased and
uniform mix. `table`: every estimator (weights and nnPU accuracy). `longer`: the default with ten times the epochs.
2,500 labeled even digits beside all 60,000 images; the prior of the training set; last epoch, no selection. One process
with one thread a run; every finished run is a line of the output file and is not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed

from pue import PUClassifier, PUData, evaluate
from pue.bench.datasets import mnist
from pue.bench.labeling import class_mix
from pue.propensity import (
    LBE,
    SAREM,
    Anchor,
    Auto,
    Boosted,
    Constant,
    CrossFit,
    DeepSAREM,
    DoubleLogistic,
    Logistic,
    Neighbors,
    Network,
    judge_propensity,
)
from pue.propensity.auto import IMAGE_NETWORK
from pue.propensity.features import fit_reduction
from pue.propensity.network import EARLY_STOPPING

DIGITS = (0, 2, 4, 6, 8)
MIXES = {"biased": (0.65, 0.15, 0.10, 0.07, 0.03), "uniform": (0.2,) * 5}
CLASSIFIER: dict[str, Any] = {"epochs": 10, "lr": 1e-3, "weight_decay": 5e-3}
TEN_EPOCHS = replace(EARLY_STOPPING, epochs=10, patience=None, validation=0.0, keep="last")

ESTIMATORS: dict[str, tuple[Callable[[], Any], bool]] = {
    # name → (estimator, whether it sees 50 principal components instead of pixels)
    "auto": (Auto, False),
    "constant (SCAR)": (Constant, False),
    "logistic": (Logistic, False),
    "logistic, cross-fitted": (lambda: CrossFit(Logistic()), False),
    "network, paper's α = 15, 10 epochs": (lambda: Network(backbone="mlp", training=TEN_EPOCHS), False),
    "network, α = 0, 10 epochs": (lambda: Network(alpha=0.0, backbone="mlp", training=TEN_EPOCHS), False),
    "network, α = 15 as a sum over the batch": (
        lambda: Network(form="sum_batch", backbone="mlp", training=TEN_EPOCHS), False),
    "network, α = 15, early stopping": (
        lambda: Network(backbone="mlp", training=replace(EARLY_STOPPING, epochs=20, patience=3)), False),
    "small network, cross-fitted": (lambda: CrossFit(IMAGE_NETWORK), False),
    "neighbors, cross-fitted": (lambda: CrossFit(Neighbors(), 10), False),
    "boosted trees": (Boosted, True),
    "anchor on logistic": (lambda: Anchor(Logistic()), False),
    "SAR-EM, logistic": (SAREM, True),
    "SAR-EM, deep": (DeepSAREM, True),
    "LBE, linear": (LBE, True),
    "double logistic": (DoubleLogistic, True),
}  # fmt: skip

Run = dict[str, Any]


def load(folder: str | None, mix: str, seed: int) -> tuple[Any, PUData, Any]:
    split = mnist(folder)
    shares = dict(zip(DIGITS, MIXES[mix], strict=True))
    data, truth = class_mix(
        split.train_x, split.train_classes, mix=shares, n_labeled=2500, rng=np.random.default_rng(seed)
    )
    return split, data, truth


def weights_quality(e: torch.Tensor, data: PUData, truth: Any) -> dict[str, float]:
    """Distance of the weights' class shares from the true ones, and how ê compares with e."""
    classes, everyone = truth.classes[data.labeled], truth.classes[data.unlabeled]
    weight = 1 / e
    shares = torch.tensor([float(weight[classes == digit].sum() / weight.sum()) for digit in DIGITS])
    true = torch.tensor([float((everyone == digit).sum()) for digit in DIGITS])
    known = truth.labeled_propensity(data).log()
    spread = e.log().std() * known.std()
    correlation = float(torch.corrcoef(torch.stack([e.log(), known]))[0, 1]) if spread > 1e-9 else float("nan")
    return {
        "share_distance": 0.5 * float((shares - true / true.sum()).abs().sum()),
        "correlation": correlation,
        "effective_sample_size": float(weight.sum() ** 2 / (weight**2).sum()),
        **{f"share_{digit}": float(share) for digit, share in zip(DIGITS, shares, strict=True)},
    }


def propensity_of(name: str, data: PUData, truth: Any, prior: float, seed: int, cache: Path) -> tuple[Any, Run]:
    """ê of the labeled rows, estimated once for each seed and mix, with what it cost."""
    if name == "none":
        return None, {}
    if name == "true":
        e = truth.labeled_propensity(data)
        return e, weights_quality(e, data, truth)
    file = cache.with_suffix(".json")
    if file.exists():
        stored = json.loads(file.read_text())
        return torch.tensor(stored["e"], dtype=torch.float64), stored["quality"]
    make, reduced = ESTIMATORS[name] if name in ESTIMATORS else (LONGER[name], False)
    seen = data
    if reduced:
        seen = PUData(fit_reduction(data.x)(data.x).double(), data.labels, data.scenario)
    start, cpu = time.perf_counter(), time.process_time()
    estimator = make()
    model = estimator.fit(seen, prior=prior, seed=seed)
    found = judge_propensity(model, seen, name=type(estimator).__name__)
    e, report = found.e, found.report
    quality = weights_quality(e, data, truth) | {
        "propensity_seconds": time.perf_counter() - start,
        "propensity_cpu": time.process_time() - cpu,
        "implied_prior": report.implied_prior,
        "source": report.source,
        "alarm": report.alarm,
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps({"e": e.tolist(), "quality": quality}))
    partial.replace(file)
    return e, quality


def ten_times_longer() -> Auto:
    return Auto(image_network=replace(IMAGE_NETWORK, training=replace(IMAGE_NETWORK.training, epochs=80)))


LONGER: dict[str, Callable[[], Any]] = {"auto, 80 epochs": ten_times_longer}


def run(mix: str, method: str, propensity: str, seed: int, network: str, folder: str | None, out: Path) -> Run:
    torch.set_num_threads(1)
    split, data, truth = load(folder, mix, seed)
    prior = float(split.train_y.double().mean())
    cache = out.parent / "propensities" / f"{mix}-{seed}-{propensity.replace(' ', '_').replace('/', '_')}"
    e, record = propensity_of(propensity, data, truth, prior, seed, cache)
    if method != "weights only":
        start, cpu = time.perf_counter(), time.process_time()
        classifier = PUClassifier(
            method,
            prior=prior,
            scenario="case_control",
            backbone=network,
            random_state=seed,
            progress=False,
            **CLASSIFIER,
        )
        classifier.fit(data.x, data.labels, propensity=e)
        record = record | {
            "classifier_seconds": time.perf_counter() - start,
            "classifier_cpu": time.process_time() - cpu,
        }
        scores = torch.from_numpy(classifier.decision_function(split.test_x))
        record |= evaluate(split.test_y, scores).as_dict()
    record |= {"mix": mix, "method": method, "propensity": propensity, "seed": seed, "network": network}
    with out.open("a") as file:
        file.write(json.dumps(record) + "\n")
    return record


def jobs_of(what: str, seeds: int) -> list[tuple[str, str, str, int]]:
    if what == "gain":
        return [
            (mix, method, propensity, seed)
            for seed in range(seeds)
            for mix in MIXES
            for propensity in ("auto", "none", "true")
            for method in ("nnpu", "distpu_warmup")
            if not (mix == "uniform" and propensity == "true")
        ]
    if what == "longer":
        return [("biased", "weights only", name, seed) for seed in range(seeds) for name in LONGER]
    return [("biased", "nnpu", name, seed) for seed in range(seeds) for name in ESTIMATORS]


def show(out: Path, picture: str | None) -> None:
    records = [json.loads(line) for line in out.read_text().splitlines()]
    print(f"{'mix':8} {'method':13} {'network':8} {'propensity':40} {'n':>2} {'accuracy %':>14} "
          f"{'AUC %':>14} {'share TV':>15} {'corr':>6} {'n_eff':>6} {'sec':>6}")  # fmt: skip
    for key in sorted({(r["mix"], r["method"], r["network"], r["propensity"]) for r in records}):
        rows = [r for r in records if (r["mix"], r["method"], r["network"], r["propensity"]) == key]

        def cell(name: str, factor: float = 1.0, digits: int = 2, rows: list[Run] = rows) -> str:
            values = [factor * r[name] for r in rows if r.get(name) is not None]
            if not values:
                return "-"
            spread = f" ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else ""
            return f"{np.mean(values):.{digits}f}{spread}"

        seconds = [r["propensity_seconds"] for r in rows if "propensity_seconds" in r]
        print(f"{key[0]:8} {key[1]:13} {key[2]:8} {key[3]:40} {len(rows):2} {cell('accuracy', 100):>14} "
              f"{cell('auc', 100):>14} {cell('share_distance', digits=3):>15} {cell('correlation')[:5]:>6} "
              f"{cell('effective_sample_size', digits=0).split(' ')[0]:>6} "
              f"{np.mean(seconds) if seconds else float('nan'):6.0f}")  # fmt: skip
    for network in sorted({r["network"] for r in records}):
        for method in ("nnpu", "distpu_warmup"):
            kind = [r for r in records if (r["mix"], r["method"], r["network"]) == ("biased", method, network)]
            accuracy = {
                name: {r["seed"]: r["accuracy"] for r in kind if r["propensity"] == name}
                for name in ("none", "auto", "true")
            }
            seeds = sorted(set.intersection(*(set(found) for found in accuracy.values())))
            if not seeds:
                continue
            none, auto, true = (np.mean([found[seed] for seed in seeds]) for found in accuracy.values())
            print(f"{method}, {network}: recovered gain {(auto - none) / (true - none):.2f} (n = {len(seeds)} seeds)")
    if picture:
        draw(records, picture)


def draw(records: list[Run], picture: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    nnpu = [r for r in records if (r["mix"], r["method"], r["network"]) == ("biased", "nnpu", "tabular")]
    names = [name for name in [*ESTIMATORS, "true"] if any(r["propensity"] == name for r in nnpu)]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 0.36 * len(names) + 1.4), sharey=True, layout="constrained")
    for place, name in enumerate(names):
        rows = [r for r in nnpu if r["propensity"] == name]
        color = {"auto": "tab:blue", "true": "black"}.get(name, "tab:gray")
        for axes, key, factor in ((left, "share_distance", 1), (right, "accuracy", 100)):
            values = [factor * r[key] for r in rows if key in r]
            axes.plot(values, [place] * len(values), "o", color=color, alpha=0.5, markersize=4)
            axes.plot([np.mean(values)], [place], "D", color=color, markersize=7)
    base = [100 * r["accuracy"] for r in nnpu if r["propensity"] == "none"]
    if base:
        right.axvline(np.mean(base), linestyle=":", color="tab:red")
        right.text(np.mean(base), -0.7, "no weights", color="tab:red", ha="center", fontsize=8)
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.set_xlabel("distance of the weights' class shares from the truth (0 is right)")
    right.set_xlabel("nnPU test accuracy, %")
    for axes in (left, right):
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["gain", "table", "longer", "show"])
    parser.add_argument("--data", help="folder that holds mnist/ (default: $PUE_DATA)")
    parser.add_argument("--out", type=Path, default=Path("mnist_propensity.jsonl"))
    parser.add_argument("--network", default="mlp", help="the classifier's: mlp (the paper's) or tabular (small)")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--picture", help="where `show` writes the picture of the table")
    args = parser.parse_args()
    if args.what == "show":
        show(args.out, args.picture)
        return
    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if args.out.exists():
        lines = [json.loads(line) for line in args.out.read_text().splitlines()]
        done = {(r["mix"], r["method"], r["propensity"], r["seed"], r["network"]) for r in lines}
    todo = [job for job in ((*job, args.network) for job in jobs_of(args.what, args.seeds)) if job not in done]
    Parallel(n_jobs=args.jobs, verbose=10)(delayed(run)(*job, args.data, args.out) for job in todo)


if __name__ == "__main__":
    # Functions of an importable module are sent to other processes by name, those of __main__ by value.
    from mnist_propensity import main as imported_main

    imported_main()
