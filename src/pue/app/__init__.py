"""What a practitioner keeps: a table or images → a fitted model with its preprocessing, probabilities and threshold.

source ─► rows (features, labels) ─► fit ─► PUModel ─► predict, evaluate, page
                                └─► compare
"""

from pue.errors import require

require("app")
