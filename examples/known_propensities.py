"""Known chances of a label: an audit plan says who was looked at.

Auditors looked at every second large case and at one small case in twenty. Then nothing has to be estimated: hand the
chance of each labeled row to `fit`.
"""

import numpy as np

from pue import PUClassifier

rng = np.random.default_rng(0)
n = 2000
y = rng.random(n) < 0.4  # the truth: here it only makes labels, and judges
large = rng.random(n) < 0.5
X = rng.normal(size=(n, 2))
X[:, 0] += 2 * y
X[:, 1] += 3 * y * np.where(large, 1, -1)
audited = np.where(large, 0.5, 0.05)
s = (y & (rng.random(n) < audited)).astype(int)

for title, chance in {"labels as they are": None, "known chances": audited[s == 1]}.items():
    clf = PUClassifier("nnpu", prior=0.4, epochs=20, random_state=0).fit(X, s, propensity=chance)
    print(f"{title:18}  {np.mean(clf.predict(X) == y):.0%} right")
