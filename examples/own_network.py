"""A network of your own: any torch module that gives one score a row.

Pass a module, or a function that makes one; the function is told the shape of a row. Everything else, from scikit-
learn's `clone` to early stopping on held-out rows, works as with the built-in networks.
"""

import numpy as np
from sklearn.datasets import load_digits
from torch import nn

from pue import InputSpec, PUClassifier


def two_layers(spec: InputSpec) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(spec.size, 64), nn.ReLU(), nn.Linear(64, 1))


X, digit = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
small = digit < 5  # the truth: here it only makes labels, and judges
rng = np.random.default_rng(0)
s = (small & (rng.random(len(X)) < 0.5)).astype(int)

clf = PUClassifier("nnpu", prior=0.5, backbone=two_layers, epochs=60, random_state=0)
clf.fit(X[:1200], s[:1200])
print(f"{np.mean(clf.predict(X[1200:]) == small[1200:]):.0%} of the test digits right")
