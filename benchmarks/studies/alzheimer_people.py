"""Could somebody be in two families of scans, and so in both parts of the split without common people?

    python benchmarks/studies/alzheimer_people.py --data DATA

The distance of two families is the mean, over the scans of either, of the distance to the nearest scan of the other.
Two scans of one person would be much nearer to each other than to the families around them: the ratio of the nearest
family's distance to the sixth's says so, and the rate at which the nearest family has the same diagnosis checks it.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from pue.bench.datasets import alzheimer
from pue.propensity.duplicates import families
from pue.propensity.views import looks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="folder that holds alzheimer/ (default: $PUE_DATA)")
    torch.set_num_threads(1)
    scans = alzheimer(parser.parse_args().data, size=64)
    x = torch.cat([scans.train_x, scans.test_x])
    classes = torch.cat([scans.train_classes, scans.test_classes]).numpy()
    found = families(x)
    count = int(found.family.max()) + 1
    points = looks(x).float()
    away = torch.cdist(points, points)
    member = [torch.from_numpy(found.family == family) for family in range(count)]
    one_way = torch.stack([torch.stack([away[i][:, j].amin(0).mean() for j in member]) for i in member])
    apart = ((one_way + one_way.T) / 2).fill_diagonal_(torch.inf).numpy()
    of = np.array([np.bincount(classes[own.numpy()]).argmax() for own in member])
    ordered, nearest = np.sort(apart, axis=1), apart.argmin(1)
    ratio = ordered[:, 0] / ordered[:, 5]
    print(f"{count} families; scans of one are linked up to {found.distance:.3f}")
    near = ordered[:, 0]
    print(f"the nearest two families are {near.min():.3f} apart, the median family {np.median(near):.3f} from another")
    print("nearest / sixth, quantiles 0, .05, .5, 1:", np.round(np.quantile(ratio, [0, 0.05, 0.5, 1]), 3))
    chance = float((np.bincount(of) ** 2).sum()) / count**2
    print(f"by chance, the nearest has the same diagnosis: {chance:.2f}; without dementia: {np.mean(of == 0):.2f}")
    for name, order in (("smallest ratio", np.argsort(ratio)), ("densest place", np.argsort(ordered[:, 5]))):
        first = order[:25]
        alike, healthy = np.mean(of[first] == of[nearest[first]]), np.mean(of[first] == 0)
        print(f"the 25 of the {name}: {alike:.2f} and {healthy:.2f}")


if __name__ == "__main__":
    main()
