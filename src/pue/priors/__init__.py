"""Estimators of the class prior π = P(positive), one file each: `(data) -> π̂`. `PRIORS` names them."""

from __future__ import annotations

from collections.abc import Callable

from pue.data import PUData
from pue.priors.elkan_noto import elkan_noto

PRIORS: dict[str, Callable[[PUData], float]] = {"elkan_noto": elkan_noto}

__all__ = ["PRIORS", "elkan_noto"]
