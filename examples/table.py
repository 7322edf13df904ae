"""A table: find the frauds that nobody looked for.

A column marks the claims that were found to be frauds. Large sums are looked into more often, so the labels are
biased. `propensity="auto"` estimates the chance of a label and weights the labeled rows by its inverse.
"""

import numpy as np
import pandas as pd

from pue import PUClassifier

rng = np.random.default_rng(0)
n = 1500
fraud = rng.random(n) < 0.3  # the truth: here it only makes labels, and judges
large = fraud & (rng.random(n) < 0.5)  # two kinds of fraud, large and small sums
claims = pd.DataFrame(
    {
        "log_amount": rng.normal(size=n) + 2 * large - 2 * (fraud & ~large),
        "days_to_report": rng.normal(size=n) + 4 * fraud,
        "earlier_claims": rng.poisson(1 + 2 * fraud),
    }
)
found = (fraud & (rng.random(n) < np.where(large, 0.6, 0.1))).astype(int)  # 1: found, 0: nobody knows

for title, propensity in {"labels as they are": None, "weighted": "auto"}.items():
    clf = PUClassifier("nnpu", propensity=propensity, prior=0.3, epochs=20, random_state=0).fit(claims, found)
    print(f"{title:18}  {np.mean(clf.predict(claims) == fraud):.0%} right")
