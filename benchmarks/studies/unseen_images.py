"""Does the default recover what true propensities gain, on images that nothing was tuned on?

    python benchmarks/studies/unseen_images.py --data DATA --seeds 0-2 --out docs/results/unseen_images.jsonl
    python benchmarks/studies/unseen_images.py --out docs/results/unseen_images.jsonl --show

*fashion*: 5,000 images of Fashion-MNIST (DATA/fashion_mnist, four idx files), five kinds of clothes positive;
*fashion-30000*: more of the same. *emoji*: DATA/emoji/img, a folder for each of four vendors, and emoji.json (the
packages emoji-datasource-*), living things positive; no emoji is in both parts. Labels by kind, .5 to .04. Six parts in
ten train. As images with the default network (`images`; `images-teacher`: with `--method teacher`), and as rows of
pixels with a forest (`pixels`) and with the blend that `pue fit` takes for tables (`pixels-blend`); the prior given,
propensities none, auto, true, all else as it is by default. A run that was cut goes on where it was.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # before any import

import argparse
import gzip
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pue import PUClassifier
from pue.files import write_text

RATES = (0.5, 0.2, 0.1, 0.06, 0.04)
"""Of a label, kind by kind of the positives."""
LIVING = ("People & Body", "Smileys & Emotion", "Animals & Nature")
SIDE = 20
FORMS = {
    "images": ("nnpu", "auto"),
    "images-teacher": ("teacher", "auto"),
    "pixels": ("nnpu", "forest"),
    "pixels-blend": ("nnpu", "blend"),
}
"""Method and backbone."""


@dataclass(frozen=True)
class Images:
    x: NDArray[np.uint8]
    kind: NDArray[np.int64]
    """Of a positive, which of its kinds; −1: negative."""
    group: NDArray[np.int64]
    """What is never in both parts."""


def fashion(folder: Path, n: int = 5_000) -> Images:
    def read(name: str, head: int) -> NDArray[np.uint8]:
        return np.frombuffer(gzip.decompress((folder / "fashion_mnist" / name).read_bytes()), np.uint8, offset=head)

    x = read("train-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)[:n]
    classes = read("train-labels-idx1-ubyte.gz", 8)[:n].astype(np.int64)
    return Images(x, np.where(classes % 2 == 0, classes // 2, -1), np.arange(len(x)))


def emoji(folder: Path) -> Images:
    from PIL import Image

    known = json.loads((folder / "emoji" / "emoji.json").read_text())
    images, kinds, groups = [], [], []
    for number, about in enumerate(known):
        for path in sorted((folder / "emoji" / "img").glob(f"*/64/{about['image']}")):
            with Image.open(path) as opened:
                seen = opened.convert("RGBA").resize((SIDE, SIDE), Image.Resampling.BILINEAR)
            on_white = Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen)
            images.append(np.asarray(on_white.convert("RGB")))
            kinds.append(LIVING.index(about["category"]) * 2 if about["category"] in LIVING else -1)
            groups.append(number)
    return Images(np.stack(images), np.array(kinds), np.array(groups))


SETS: dict[str, Callable[[Path], Images]] = {
    "fashion": fashion,
    "fashion-30000": partial(fashion, n=30_000),
    "emoji": emoji,
}


@cache
def images_of(name: str, folder: str) -> Images:
    return SETS[name](Path(folder))


def measured(name: str, form: str, kind: str, seed: int, folder: str) -> dict[str, Any]:
    images, rng = images_of(name, folder), np.random.default_rng(seed)
    held_out = np.isin(
        images.group, rng.permutation(np.unique(images.group))[: int(0.4 * len(np.unique(images.group)))]
    )
    positive = images.kind >= 0
    e = np.where(positive, np.array([*RATES, 0.0])[images.kind], np.nan)
    labeled = rng.random(len(e)) < np.nan_to_num(e)
    train = ~held_out
    x = images.x.reshape(len(images.x), -1) if form.startswith("pixels") else images.x
    propensity = "auto" if kind == "auto" else None
    began, (method, backbone) = time.process_time(), FORMS[form]
    model = PUClassifier(method, prior=float(positive[train].mean()), propensity=propensity, random_state=seed,
                         backbone=backbone, progress=False)  # fmt: skip
    model.fit(x[train], labeled[train].astype(int), propensity=e[train & labeled] if kind == "true" else None)
    right = (model.predict(x[held_out]) == 1) == positive[held_out]
    return {
        "set": name, "form": form, "propensity": kind, "seed": seed, "rows": int(train.sum()),
        "labels": int(labeled[train].sum()), "accuracy": round(100 * float(right.mean()), 3),
        "cpu": round(time.process_time() - began, 1),
    }  # fmt: skip


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(record[name] for name in ("set", "form", "propensity", "seed"))


def shown(records: list[dict[str, Any]]) -> str:
    """Accuracy, mean ± standard deviation over seeds, and the recovered gain of the means."""
    lines = ["| images | as | none | auto | true | recovered | seeds |", "|---" * 7 + "|"]
    for name, form in dict.fromkeys((record["set"], record["form"]) for record in records):
        own = {kind: [r["accuracy"] for r in records if (r["set"], r["form"], r["propensity"]) == (name, form, kind)]
               for kind in ("none", "auto", "true")}  # fmt: skip
        if min(map(len, own.values())) == 0:
            continue
        mean = {kind: float(np.mean(values)) for kind, values in own.items()}
        cells = [
            f"{mean[kind]:.2f} ± {np.std(values, ddof=min(1, len(values) - 1)):.2f}" for kind, values in own.items()
        ]
        recovered = (mean["auto"] - mean["none"]) / (mean["true"] - mean["none"])
        lines.append(f"| {name} | {form} | {' | '.join(cells)} | {recovered:.2f} | {len(own['auto'])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="fashion,emoji")
    parser.add_argument("--forms", default=",".join(FORMS))
    parser.add_argument("--seeds", default="0-2", help="first-last")
    parser.add_argument("--out", type=Path, default=Path("unseen_images.jsonl"))
    parser.add_argument("--data", help="folder that holds fashion_mnist/ and emoji/ (default: $PUE_DATA)")
    parser.add_argument("--show", action="store_true", help="print the table of what there is")
    given = parser.parse_args()
    found = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    if not given.show:
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        first, _, last = given.seeds.partition("-")
        wanted = [(name, form, kind, seed) for seed in range(int(first), int(last or first) + 1)
                  for name in given.sets.split(",") for form in given.forms.split(",")
                  for kind in ("none", "auto", "true")]  # fmt: skip
        done = {key(record) for record in found}
        for one in (one for one in wanted if one not in done):
            found.append(measured(*one, given.data or os.environ["PUE_DATA"]))
            print(json.dumps(found[-1]), flush=True)
            write_text(given.out, "".join(json.dumps(record) + "\n" for record in found))
    print(shown(found))


if __name__ == "__main__":
    main()
