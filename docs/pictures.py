"""README's picture, and the numbers behind it.

    python docs/pictures.py

Writes docs/images/weights.json and, from it, weights.png, which carries the fingerprint of its numbers.
tests/e2e/test_pictures.py computes a part of them anew and fails where numbers and code, or picture and numbers, part.
The pictures in docs/images/results are `pue report`'s; tests/bench/test_report.py knows them.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from pue.bench.datasets import digits
from pue.bench.labeling import class_mix
from pue.core.data import PUData
from pue.propensity import PROPENSITIES

IMAGES = Path(__file__).parent / "images"
NUMBERS, PICTURE = IMAGES / "weights.json", IMAGES / "weights.png"
MIX = {0: 0.65, 2: 0.15, 4: 0.10, 6: 0.07, 8: 0.03}
N_LABELED, SEEDS = 130, 6


def shares(seed: int) -> dict[str, list[float]]:
    """Of the positive weight, the share of each even digit: as labeled, weighted by `auto`, by true e, and as it is."""
    torch.set_num_threads(1)
    split = digits(seed=seed)
    pixels = (255 * split.train_x.reshape(-1, 1, 8, 8)).round().to(torch.uint8)
    rng = np.random.default_rng(seed)
    data, truth = class_mix(pixels, split.train_classes, mix=MIX, n_labeled=N_LABELED, rng=rng)
    assert truth.classes is not None
    digit, prior = truth.classes[data.labeled].numpy(), float(split.train_y.double().mean())
    weights = {
        "labeled": np.ones(data.n_labeled),
        "auto": 1 / estimated(data, prior, seed),
        "true": 1 / truth.labeled_propensity(data).numpy(),
    }
    positives = split.train_classes[split.train_y == 1].numpy()
    found = {name: [round(float(w[digit == d].sum() / w.sum()), 4) for d in MIX] for name, w in weights.items()}
    return found | {"positives": [round(float(np.mean(positives == d)), 4) for d in MIX]}


def estimated(data: PUData, prior: float, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    model: Any = PROPENSITIES["auto"].fit(data, prior=prior, seed=seed)
    return np.asarray(model.held_out.numpy(), dtype=np.float64)


def draw(runs: list[dict[str, list[float]]]) -> Any:
    """One dot a draw of labels; the mark is the mean, its bar one standard deviation."""
    figure, axes = plt.subplots(figsize=(7.6, 3.8), layout="constrained")
    place = np.arange(len(MIX))
    kinds = {
        "labeled": ("labels as they are", "#8a8a8a", "s", -0.14),
        "auto": ("weighted by pue", "#2f6fce", "D", 0.14),
    }
    for kind, (title, color, mark, shift) in kinds.items():
        values = 100 * np.array([run[kind] for run in runs])
        axes.plot(place + shift, values.T, "o", color=color, alpha=0.35, markersize=4, markeredgewidth=0)
        mean, spread = values.mean(0), values.std(0, ddof=1)
        axes.errorbar(place + shift + 0.07, mean, spread, fmt=mark, color=color, capsize=3, markersize=6, label=title)
    due = 100 * np.mean([run["positives"] for run in runs], axis=0)
    axes.hlines(due, place - 0.35, place + 0.38, color="#222222", label="as it should be")
    axes.set(ylim=(0, None), ylabel="share of the positive weight, %")
    axes.set_xticks(place, [f"digit {digit}" for digit in MIX])
    axes.set_title("Two thirds of the labels are zeros; weights bring the digits near their shares", fontsize=11)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def fingerprint() -> str:
    return hashlib.sha256(NUMBERS.read_bytes()).hexdigest()


def main() -> None:
    NUMBERS.write_text(json.dumps([shares(seed) for seed in range(SEEDS)], indent=1) + "\n")
    draw(json.loads(NUMBERS.read_text())).savefig(PICTURE, dpi=140, metadata={"Description": fingerprint()})


if __name__ == "__main__":
    main()
