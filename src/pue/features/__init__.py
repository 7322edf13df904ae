"""Features of images, learnt once and without labels.

`fit_encoder` trains an encoder on images alone; what it gives goes to any method as a table, or `Pretrained` makes it
the start of a network.
"""

from pue.backbones.stored import Pretrained, StoredEncoder, load_encoder
from pue.features.fit import fit_encoder, kept_encoder
from pue.features.foreign import open_encoder
from pue.features.recipe import Recipe
from pue.features.views import Views

__all__ = [
    "Pretrained",
    "Recipe",
    "StoredEncoder",
    "Views",
    "fit_encoder",
    "kept_encoder",
    "load_encoder",
    "open_encoder",
]
