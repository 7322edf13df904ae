"""Images → an encoder: trained by the one loop, continued where it was stopped, kept under the hash of what it is of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from pue.backbones.encoder import Encoder, require_images
from pue.core.data import as_float
from pue.core.randomness import seeded
from pue.features.agreement import Projected, TwoViews
from pue.features.feed import ImageFeed
from pue.features.recipe import Recipe
from pue.features.views import Views
from pue.training import Checkpointing, EpochRecord, Training
from pue.training.batches import Batching
from pue.training.loop import train_on


@dataclass(frozen=True, eq=False)
class FittedEncoder:
    """An encoder, and what it took."""

    encoder: Encoder
    history: list[EpochRecord]


def fit_encoder(
    images: Tensor,
    recipe: Recipe | None = None,
    *,
    checkpoints: str | Path | None = None,
    progress: bool | None = None,
    on_epoch: Callable[[EpochRecord, nn.Module], None] | None = None,
) -> FittedEncoder:
    """An encoder of images (n, channels, height, width) that no label was shown to.

    With `checkpoints`, a folder, a training that was stopped goes on after its last whole epoch.

    >>> images = torch.randint(0, 256, (16, 1, 16, 16), dtype=torch.uint8)
    >>> recipe = Recipe(epochs=1, batch_size=8, widths=(4, 4, 8), views=Views(size=16))
    >>> fit_encoder(images, recipe).encoder(torch.rand(3, 1, 16, 16)).shape
    torch.Size([3, 8])
    """
    require_images(images)
    recipe = recipe or Recipe()
    with seeded(recipe.seed):
        encoder = Encoder(images.shape[1], recipe.widths)
        network = Projected(encoder, encoder.width)
    encoder.whitening.fit(as_float(images[:: max(1, len(images) // 5000)]))
    training = Training(
        epochs=recipe.epochs,
        batching=Batching(size=recipe.batch_size),
        optimizer="adamw",
        lr=recipe.lr,
        weight_decay=recipe.weight_decay,
        schedule="one_cycle",
        ema=recipe.ema,
    )
    history = train_on(
        network,
        ImageFeed(images, recipe.batch_size),
        TwoViews(recipe.agreement, recipe.views, half=recipe.half),
        training,
        seed=recipe.seed,
        checkpointing=None if checkpoints is None else Checkpointing(Path(checkpoints)),
        progress=progress,
        on_epoch=on_epoch,
    )
    return FittedEncoder(encoder.eval(), history)
