"""Which epoch? nnPU and nnPU with the true propensities (nnPUe') on MNIST, stopped by criteria that need no negatives.

    python benchmarks/studies/mnist_early_stopping.py --data DATA_FOLDER

The protocol of mnist_known_propensity.py with the paper's MLP, but a long training and a tenth of the rows held out.
After every epoch all criteria are computed on the held-out rows, plain and weighted by 1/e, and the accuracy on the
test set, which nothing but the picture sees. A finished run is a line in the results file; the same command does the
runs that are missing, then prints the table and draws the picture.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import torch
from joblib import Parallel, delayed
from torch import nn

from pue import InputSpec, evaluate
from pue.backbones import build
from pue.bench.datasets import mnist
from pue.bench.labeling import class_mix
from pue.core.criteria import CRITERIA
from pue.core.risks import nnpu
from pue.methods import pu_weights
from pue.training import EpochRecord, Training, score, train
from pue.training.feeds import restrict, split_rows

MIX = {0: 0.65, 2: 0.15, 4: 0.10, 6: 0.07, 8: 0.03}
METHODS = ("nnPU", "nnPUe'")
FORMS = ("plain", "weighted")
NAMES = {"risk": "risk", "pa": "PA", "pauc": "PAUC"}

Run = dict[str, Any]


def run(case: Run, folder: str | None) -> Run:
    """One training, with everything that can be known after each of its epochs."""
    torch.set_num_threads(1)
    seed, split = case["seed"], mnist(folder)
    data, truth = class_mix(
        split.train_x, split.train_classes, mix=MIX, n_labeled=2500, rng=np.random.default_rng(seed)
    )
    prior = float(split.train_y.double().mean())
    weights = {
        "plain": pu_weights(data, prior, None),
        "weighted": pu_weights(data, prior, truth.labeled_propensity(data)),
    }
    training = Training(epochs=case["epochs"], lr=1e-3, weight_decay=5e-3, validation=case["held_out"])
    _, held_out = split_rows(data, training.validation, seed)  # the rows that `train` holds out
    epochs: list[dict[str, float]] = []

    def look(record: EpochRecord, network: nn.Module) -> None:
        test = evaluate(split.test_y, score(network, split.test_x))
        epochs.append({"accuracy": test.accuracy, "auc": test.auc})
        if held_out is not None:
            scores = score(network, data.x, held_out)
            for form in FORMS:
                judges = restrict(weights[form], data.labels, held_out)
                epochs[-1] |= {f"{name} {form}": CRITERIA[name](scores, judges) for name in NAMES}

    network = build("mlp", InputSpec(tuple(data.x.shape[1:])), seed=seed)
    own = weights["plain" if case["method"] == "nnPU" else "weighted"]
    train(network, data, own, nnpu(), training, seed=seed, progress=False, on_epoch=look)
    return {**case, "history": epochs}


def read(path: Path) -> list[Run]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def cells(runs: list[Run], choose: str) -> str:
    """At the epoch with the highest `choose`: test accuracy and what it gains over the last epoch, mean ± sd over the
    seeds, and which epoch that is; then the mean correlation of `choose` with the test accuracy over the epochs.
    """
    epochs, found = [stop(one, choose) for one in runs], chosen(runs, choose)
    gains = [value - 100 * one["history"][-1]["accuracy"] for value, one in zip(found, runs, strict=True)]
    texts = [spread(found), spread(gains, "+"), ", ".join(str(epoch + 1) for epoch in epochs), "–"]
    if choose in runs[0]["history"][0] and choose != "accuracy":
        pairs = [[(epoch[choose], epoch["accuracy"]) for epoch in one["history"]] for one in runs]
        texts[3] = f"{np.mean([np.corrcoef(np.transpose(pair))[0, 1] for pair in pairs]):.2f}"
    return " | ".join(texts)


def spread(values: list[float], sign: str = "") -> str:
    deviation = np.std(values, ddof=1) if len(values) > 1 else 0.0
    return f"{np.mean(values):{sign}.2f} ± {deviation:.2f}"


def stop(one: Run, choose: str) -> int:
    if choose == "last":
        return len(one["history"]) - 1
    return int(np.argmax([epoch[choose] for epoch in one["history"]]))


def table(runs: list[Run]) -> str:
    lines = [
        "| method | epoch chosen by | test accuracy % | against its last epoch | epochs | correlation |",
        "|---|---|---|---|---|---|",
    ]
    for method in METHODS:
        whole, split = (select(runs, method, held_out=share) for share in (False, True))
        if whole:
            lines.append(f"| {method} | last epoch, nothing held out | {cells(whole, 'last')} |")
        lines.append(f"| {method} | last epoch | {cells(split, 'last')} |")
        for name, title in NAMES.items():
            for form in FORMS:
                lines.append(f"| {method} | {title}, {form} | {cells(split, f'{name} {form}')} |")
        lines.append(f"| {method} | *oracle*: the test set itself | {cells(split, 'accuracy')} |")
    return "\n".join(lines)


def select(runs: list[Run], method: str, *, held_out: bool) -> list[Run]:
    return [one for one in runs if one["method"] == method and bool(one["held_out"]) == held_out]


def draw(runs: list[Run], path: Path) -> None:
    """For every criterion the test accuracy of the epoch that it chooses: a dot a seed, mean ± sd below; the lines are
    the last epoch and the best one."""
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    choices = {f"{title}, {form}": f"{name} {form}" for name, title in NAMES.items() for form in FORMS}
    figure, panels = plt.subplots(1, 2, figsize=(10, 3.6), sharex=True, sharey=True, layout="constrained")
    for axes, method in zip(panels, METHODS, strict=True):
        mine = select(runs, method, held_out=True)
        for name, color, dashes in (("last", "#222222", "-"), ("accuracy", "#009e73", "--")):
            title = "last epoch, mean" if name == "last" else "best epoch by the test set, mean"
            axes.axvline(float(np.mean(chosen(mine, name))), color=color, ls=dashes, lw=1.2, label=title)
        for place, choose in enumerate(choices.values()):
            found, color = chosen(mine, choose), "#8c8c8c" if choose.endswith("plain") else "#0072b2"
            axes.plot(found, [place - 0.14] * len(found), "o", ms=4, mew=0, color=color, alpha=0.5)
            deviation = np.std(found, ddof=1) if len(found) > 1 else 0.0
            axes.errorbar(np.mean(found), place + 0.14, xerr=deviation, fmt="o", ms=4, capsize=4, lw=1.4, color=color)
        axes.set_yticks(range(len(choices)), list(choices))
        axes.set_ylim(len(choices) - 0.5, -0.5)
        axes.set_title(method, fontsize=11, loc="left")
        axes.set_xlabel("test accuracy of the chosen epoch, %")
        axes.grid(axis="both", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(
        *panels[0].get_legend_handles_labels(), frameon=False, fontsize=8, ncols=2, loc="outside lower center"
    )
    figure.suptitle("Stopping by held-out rows without a single negative (a dot: a seed; mean ± sd)", fontsize=11)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)


def chosen(runs: list[Run], choose: str) -> list[float]:
    """Test accuracies, in percent, of the epochs that a criterion chooses."""
    return [100 * one["history"][stop(one, choose)]["accuracy"] for one in runs]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds mnist/ (default: $PUE_DATA)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--whole", action="store_true", help="also train with nothing held out, up to the last epoch")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("early_stopping.jsonl"))
    parser.add_argument("--picture", type=Path, default=Path("early_stopping.png"))
    args = parser.parse_args()
    cases = [
        {"method": method, "held_out": share, "seed": seed, "epochs": args.epochs}
        for share in ((0.1, 0.0) if args.whole else (0.1,))
        for seed in range(args.seeds)
        for method in METHODS
    ]
    done = {key(one) for one in read(args.results)}
    missing = [case for case in cases if key(case) not in done]
    jobs = Parallel(n_jobs=args.jobs, return_as="generator_unordered")
    for result in jobs(delayed(run)(case, args.data) for case in missing):
        with args.results.open("a") as file:
            file.write(json.dumps(result) + "\n")
    wanted = {key(case) for case in cases}
    runs = sorted((one for one in read(args.results) if key(one) in wanted), key=key)
    print(f"the paper's MLP, {args.epochs} epochs, n = {args.seeds} seeds, mean ± sd\n\n{table(runs)}")
    draw(runs, args.picture)


def key(case: Run) -> tuple[Any, ...]:
    return case["method"], case["held_out"], case["seed"], case["epochs"]


if __name__ == "__main__":
    main()
