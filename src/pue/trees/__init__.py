"""Trees that lower the same weighted risk as the networks: *what is fitted* is the fourth axis of a method.

`LEARNERS` names them beside `BACKBONES`, wherever a `PUClassifier` takes a backbone.
"""

from __future__ import annotations

from pue.trees.forest import Forest, prior_threshold
from pue.trees.nodes import Trees

LEARNERS: dict[str, Forest] = {
    "forest": Forest(),
}

__all__ = ["LEARNERS", "Forest", "Trees", "prior_threshold"]
