"""Grid search: choose settings without a single negative.

`PUWrapper` makes a PU learner of any scikit-learn classifier that takes sample weights. `make_scorer` estimates a
metric from labeled and unlabeled rows, so that scikit-learn's search works as always.
"""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV

from pue import PUWrapper
from pue.judging import make_scorer

rng = np.random.default_rng(0)
y = rng.random(2000) < 0.4  # the truth: here it only makes labels, and judges
X = rng.normal(size=(2000, 5)) + 1.5 * y[:, None]
s = (y & (rng.random(2000) < 0.4)).astype(int)

trees = PUWrapper(HistGradientBoostingClassifier(max_iter=40), prior=0.4, random_state=0)
grid = {"base_estimator__max_leaf_nodes": [2, 8, 31]}
search = GridSearchCV(trees, grid, scoring=make_scorer("auc"), cv=3).fit(X, s)
for leaves, auc in zip(grid["base_estimator__max_leaf_nodes"], search.cv_results_["mean_test_score"], strict=True):
    print(f"{leaves:2} leaves: estimated AUC {auc:.2f}")
