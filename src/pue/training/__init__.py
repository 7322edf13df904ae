"""The one optimisation loop, and the parts it is made of. It knows rows, weights and a risk; no method by name."""

from pue.training.augment import Augmentation
from pue.training.batches import Batching
from pue.training.checkpoints import Checkpointing
from pue.training.loop import score, train
from pue.training.schedules import SCHEDULES
from pue.training.settings import EpochRecord, Training

__all__ = [
    "SCHEDULES",
    "Augmentation",
    "Batching",
    "Checkpointing",
    "EpochRecord",
    "Training",
    "score",
    "train",
]
