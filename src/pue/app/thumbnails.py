"""Small pictures of images as `data:` addresses, so that a page needs no other file."""

from __future__ import annotations

import base64
import io
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIDE = 64
"""Pixels of the longer side, at most; smaller images stay as they are, and the page enlarges them."""
LONGEST = 24_000
"""Characters of an address: a colored picture of noise takes about 16,000."""
_ADDRESS = re.compile(r"data:image/png;base64,[A-Za-z0-9+/]+={0,2}")


def thumbnail(pixels: NDArray[np.uint8]) -> str:
    """An image, channels first, as the address of a PNG.

    >>> thumbnail(np.zeros((1, 200, 100), dtype=np.uint8))[:22]
    'data:image/png;base64,'
    """
    from PIL import Image

    picture = Image.fromarray(np.ascontiguousarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)))
    picture.thumbnail((SIDE, SIDE))
    content = io.BytesIO()
    picture.save(content, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"


def is_thumbnail(address: Any) -> bool:
    """Whether a page may show this: a PNG of bounded size, and nothing that would have to be fetched."""
    return isinstance(address, str) and len(address) <= LONGEST and _ADDRESS.fullmatch(address) is not None
