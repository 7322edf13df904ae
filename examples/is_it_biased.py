"""Are the labels biased, and by what?

Look before learning: `diagnose` tests whether the labels are a fair sample of the positives, names the columns that
decide who has a label, says whether weights can repair it, and what to label next. `print(found)` shows all of it.
"""

import numpy as np
import pandas as pd

from pue import diagnose

rng = np.random.default_rng(0)
n = 2000
ill = rng.random(n) < 0.4  # the truth: here it only makes labels
patients = pd.DataFrame({"age": rng.normal(size=n) + 3 * ill, "income": rng.normal(size=n) + 2 * ill})
visits = 1 / (1 + np.exp(3 - 1.5 * patients.income))  # who can pay sees a doctor
diagnosed = (ill & (rng.random(n) < visits)).astype(int)

found = diagnose(patients, diagnosed, prior=0.4, propensity="logistic")
print("biased" if found.scar.rejected else "no sign of a bias", "- driven by", found.drivers[0].name)
print(found.recommendation)
