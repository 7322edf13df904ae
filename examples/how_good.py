"""How good is it, without a single negative?

The share of positives, the share of rows called positive and the labeled rows found are enough. Weighted by the
inverse of their chance of a label, the labeled rows speak for all positives.
"""

import numpy as np
from sklearn.linear_model import LogisticRegression

from pue import PUWrapper, estimate_metrics

rng = np.random.default_rng(0)
n = 6000
y = rng.random(n) < 0.3  # the truth: here it only makes labels, and judges
X = rng.normal(size=(n, 3)) + 2 * y[:, None]
chance = 1 / (1 + np.exp(2 - X[:, 0]))  # positives with a large first column are labeled more often
s = (y & (rng.random(n) < chance)).astype(int)
train, test = slice(0, 3000), slice(3000, None)

clf = PUWrapper(LogisticRegression(), prior=0.3).fit(X[train], s[train], propensity=chance[train][s[train] == 1])
scores = clf.decision_function(X[test])
weighted = estimate_metrics(scores, s[test], prior=0.3, propensity=chance[test][s[test] == 1])
as_they_are = estimate_metrics(scores, s[test], prior=0.3)
print(f"recall, true                  {np.mean(scores[y[test]] > 0):.0%}")
print(f"estimated, labels weighted    {weighted.recall.value:.0%}")
print(f"estimated, labels as they are {as_they_are.recall.value:.0%}")
