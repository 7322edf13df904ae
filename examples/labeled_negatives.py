"""Labeled negatives: some rows are known to be negative, and they are no fair sample either.

Label them -1. PUbN learns from all three kinds of rows; `rho` is the share of the population that such negatives
stand for. Here 200 even digits are labeled as positive, and 200 ones and threes as negative; nobody labels a five.
"""

import numpy as np
from sklearn.datasets import load_digits

from pue import PUbN, PUClassifier

X, digit = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
even, sorted_out = digit % 2 == 0, np.isin(digit, [1, 3])
train, test = slice(0, 1200), slice(1200, None)

rng = np.random.default_rng(0)
s = np.zeros(len(X), int)
s[rng.permutation(np.flatnonzero(even[train]))[:200]] = 1
s[rng.permutation(np.flatnonzero(sorted_out[train]))[:200]] = -1

without = PUClassifier("nnpu", prior=0.5, epochs=20, random_state=0).fit(X[train], np.maximum(s, 0)[train])
using = PUClassifier(PUbN(rho=0.2), prior=0.5, epochs=20, random_state=0).fit(X[train], s[train])
for title, clf in {"without them": without, "with them": using}.items():
    print(f"{title:12}  {np.mean(clf.predict(X[test]) == even[test]):.0%} of the test digits right")
