"""The one optimisation loop and its parts. It knows rows, weights and an objective; no method by name."""

from pue.training.augment import Augmentation
from pue.training.batches import Batching
from pue.training.checkpoints import Checkpointing
from pue.training.loop import train
from pue.training.objectives import Batch, Objective, StepRisk, step_risk
from pue.training.schedules import SCHEDULES
from pue.training.scoring import score
from pue.training.settings import EpochRecord, Training
from pue.training.streamed import RowStream, StreamedTable

__all__ = ["SCHEDULES", "Augmentation", "Batch", "Batching", "Checkpointing", "EpochRecord", "Objective", "RowStream",
           "StepRisk", "StreamedTable", "Training", "score", "step_risk", "train"]  # fmt: skip
