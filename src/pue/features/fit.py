"""Images → an encoder: trained by the one loop, continued where it was stopped, kept by the hash of what it is of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from torch import Tensor, nn

from pue.backbones.encoder import FIT_IMAGES, Encoder, require_images
from pue.backbones.inputs import InputSpec
from pue.backbones.stored import StoredEncoder, load_encoder
from pue.core.data import as_float
from pue.core.randomness import seeded
from pue.errors import ModelError
from pue.features.agreement import Projected, TwoViews
from pue.features.feed import ImageFeed
from pue.features.recipe import Recipe
from pue.files import making
from pue.persistence.model import save
from pue.training import Batching, Checkpointing, EpochRecord, Training
from pue.training.loop import train_on

Watch = Callable[[EpochRecord, nn.Module], None]


def fit_encoder(
    images: Tensor,
    recipe: Recipe | None = None,
    *,
    checkpoints: str | Path | None = None,
    progress: bool | float | None = None,
    on_epoch: Watch | None = None,
) -> StoredEncoder:
    """An encoder of images (n, channels, height, width) that no label was shown to.

    With `checkpoints`, a folder, a training that was stopped goes on after its last whole epoch.

    >>> import torch
    >>> from pue.features import Recipe, Views
    >>> images = torch.randint(0, 256, (16, 1, 16, 16), dtype=torch.uint8)
    >>> recipe = Recipe(epochs=1, batch_size=8, widths=(4, 4, 8), views=Views(size=16))
    >>> fit_encoder(images, recipe)(images).shape
    torch.Size([16, 8])
    """
    require_images(images)
    recipe = recipe or Recipe()
    with seeded(recipe.seed):
        encoder = Encoder(images.shape[1], recipe.widths)
        network = Projected(encoder, encoder.width)
    encoder.whitening.fit(as_float(images[:: max(1, len(images) // FIT_IMAGES)]))
    objective = TwoViews(recipe.agreement, recipe.views, half=recipe.half)
    history = train_on(
        network,
        ImageFeed(images, recipe.batch_size),
        objective,
        _training(recipe),
        seed=recipe.seed,
        checkpointing=None if checkpoints is None else Checkpointing(Path(checkpoints)),
        progress=progress,
        on_epoch=on_epoch,
    )
    settings = {name: value for name, value in asdict(recipe).items() if name != "views"}
    facts: dict[str, str | float] = {
        **{name: float(value) if isinstance(value, float | int) else str(value) for name, value in settings.items()},
        **{f"views_{name}": float(value) for name, value in asdict(recipe.views).items()},
        "images": float(len(images)),
        "risk": history[-1].risk,
        "wall_seconds": sum(epoch.seconds for epoch in history),
        "cpu_seconds": float(objective.spent),
    }
    spec = InputSpec(tuple(images.shape[1:]))
    return StoredEncoder(encoder.eval(), recipe.widths, spec, recipe.views.flip, recipe.key(images), facts)


def kept_encoder(images: Tensor, recipe: Recipe, home: Path, *, progress: bool | float | None = None) -> StoredEncoder:
    """The encoder of these images in the folder `home`, trained now if it is not there; whoever comes second waits."""
    folder = home / recipe.key(images)[:16]
    if not folder.is_dir():
        with making(folder, wait=True):
            if not folder.is_dir():
                found = fit_encoder(images, recipe, checkpoints=home / f"{folder.name}-run", progress=progress)
                save(found, folder)
    found = load_encoder(folder)
    if found.key != recipe.key(images):
        raise ModelError(f"{folder} holds the encoder of other images or settings. Remove it, and it is made again.")
    return found


def _training(recipe: Recipe) -> Training:
    return Training(
        epochs=recipe.epochs,
        batching=Batching(size=recipe.batch_size),
        optimizer="adamw",
        lr=recipe.lr,
        weight_decay=recipe.weight_decay,
        schedule="one_cycle",
        ema=recipe.ema,
    )
