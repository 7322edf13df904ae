"""The picture of the audits' tutorial, and the numbers behind it: what is known of the share of positives.

    python docs/audit_picture.py

Writes docs/images/audit.json and, from it, audit.png, which carries the fingerprint of its numbers.
tests/e2e/test_pictures.py computes the numbers anew and fails where numbers and code, or picture and numbers, part.
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
from numpy.typing import NDArray

from pue import audit, estimate_prior

IMAGES = Path(__file__).parent / "images"
NUMBERS, PICTURE = IMAGES / "audit.json", IMAGES / "audit.png"
ROUNDS = (25, 25, 50)


def table(n: int = 2000, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.bool_]]:
    """The tutorial's rows: two kinds of positives, one of which is labeled six times as often as the other."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, n, p=[0.6, 0.2, 0.2])
    x = rng.normal(size=(n, 2)) + np.array([[0, 0], [2.5, 0], [0, 2.5]])[kind]
    labels = (rng.random(n) < np.array([0, 0.6, 0.1])[kind]).astype(np.int64)
    return x, labels, kind > 0


def numbers() -> dict[str, Any]:
    """[value, low, high] before any answer, and after each round."""
    x, labels, y = table()
    before = estimate_prior(x, labels, level=0.95)
    scores = 1 / (1 + np.exp(2 - x.sum(axis=1)))  # a rough model will do: the answers need not believe it
    found, drawn, n = [["no answers", before.value, before.low, before.high]], None, 0
    for size in ROUNDS:
        more = audit.plan(scores, labels, n=size, after=drawn, seed=n)
        drawn, n = more if drawn is None else audit.join(drawn, more), n + size
        prior = audit.read(drawn, y[drawn.rows]).prior
        found.append([f"{n} answers", prior.value, prior.low, prior.high])
    rounded = [[title, *(round(float(v), 4) for v in values)] for title, *values in found]
    return {"truth": round(float(y.mean()), 4), "known": rounded}


def draw(found: dict[str, Any]) -> Any:
    figure, axes = plt.subplots(figsize=(7.6, 2.6), layout="constrained")
    for place, (_, value, low, high) in enumerate(found["known"]):
        color = "#8a8a8a" if place == 0 else "#2f6fce"
        axes.hlines(place, low, high, color=color, linewidth=7, alpha=0.45)
        axes.plot(value, place, "o", color=color)
    axes.axvline(found["truth"], color="#222222", linewidth=1)
    axes.text(found["truth"], -0.75, " the truth", fontsize=9, va="center")
    axes.set_yticks(range(len(found["known"])), [title for title, *_ in found["known"]])
    axes.set(xlim=(0, 1), ylim=(len(found["known"]) - 0.5, -1), xlabel="share of positives, 95 % intervals")
    axes.set_title("Labels alone leave the share of positives open; answers settle it", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def fingerprint() -> str:
    return hashlib.sha256(NUMBERS.read_bytes()).hexdigest()


def main() -> None:
    NUMBERS.write_text(json.dumps(numbers(), indent=1) + "\n")
    draw(json.loads(NUMBERS.read_text())).savefig(PICTURE, dpi=140, metadata={"Description": fingerprint()})


if __name__ == "__main__":
    main()
