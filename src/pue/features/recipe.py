"""How an encoder is trained, as a frozen value; with the images it decides the encoder."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field

from torch import Tensor

from pue.errors import InvalidInput, lookup
from pue.features.agreement import AGREEMENTS
from pue.features.views import Views


@dataclass(frozen=True)
class Recipe:
    """Self-supervised training of an `Encoder`.

    >>> import torch
    >>> Recipe(epochs=3).key(torch.zeros(2, 1, 16, 16)) == Recipe(epochs=4).key(torch.zeros(2, 1, 16, 16))
    False
    """

    agreement: str = "simclr"
    """"simclr" or "vicreg"."""
    epochs: int = 60
    batch_size: int = 512
    lr: float = 2e-3
    weight_decay: float = 0.05
    ema: float = 0.998
    """Decay of the average of the weights that is the encoder at last."""
    widths: tuple[int, ...] = (32, 128, 256)
    """Channels of the three groups of convolutions; the last is the number of features."""
    views: Views = field(default_factory=Views)
    half: bool = True
    """Convolutions in bfloat16: twice as fast on processors that have it."""
    seed: int = 0

    def __post_init__(self) -> None:
        lookup("agreement", self.agreement, AGREEMENTS)
        if self.epochs < 1 or self.batch_size < 8 or not self.widths:
            raise InvalidInput(f"an encoder needs epochs, batches of at least 8 images and widths; got {self}.")

    def key(self, images: Tensor) -> str:
        """Hash of the recipe and every pixel: the same key, the same encoder."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode())
        digest.update(f"{images.dtype} {tuple(images.shape)}".encode())
        digest.update(images.cpu().contiguous().numpy().data)
        return digest.hexdigest()
