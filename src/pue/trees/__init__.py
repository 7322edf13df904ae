"""Trees that lower the same weighted risk as the networks: *what is fitted* is the fourth axis of a method.

`LEARNERS` names them beside `BACKBONES`, wherever a `PUClassifier` takes a backbone.
"""

from __future__ import annotations

from pue.trees.blend import Blend
from pue.trees.blended import Blended
from pue.trees.boosted import BoostedTrees
from pue.trees.boosting import Boosting
from pue.trees.forest import Forest
from pue.trees.nodes import Ensemble, Trees, dense
from pue.trees.thresholds import prior_threshold

Learner = Forest | Boosting | Blend
"""What has `learn(data, weights, seed)` → trees, and the threshold at which they decide."""
Learnt = Ensemble | Blended
"""What a learner leaves."""

LEARNERS: dict[str, Learner] = {
    "blend": Blend(),
    "boosting": Boosting(),
    "forest": Forest(),
}

__all__ = [
    "LEARNERS", "Blend", "Blended", "BoostedTrees", "Boosting", "Ensemble", "Forest", "Learner", "Learnt", "Trees",
    "dense", "prior_threshold",
]  # fmt: skip
