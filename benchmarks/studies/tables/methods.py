"""The rows of the study by name: `learner/correction`, `fit/…`, `baseline/…`, `ceiling/…`, `library/method`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatch

from answers import Method
from baselines import BASELINES, CEILINGS
from ours import BACKBONES, CORRECTIONS, OURS
from peers import PEERS
from untold import TOLD, UNTOLD

from pue.errors import UnknownName

METHODS: dict[str, Method] = {**OURS, **BASELINES, **CEILINGS, **PEERS, **UNTOLD}
WITH_RARE = ("forest/*", "boosting/*", "fit/*", "baseline/*", "ceiling/boosting")
"""What is run on rare positives unless methods are named."""

_CORRECTED = {
    "none": "no correction",
    "auto": "auto",
    "true": "true e",
    "auto-prior": "auto, prior estimated",
}
TITLES = {
    **{
        f"{learner}/{correction}": f"{learner}, {_CORRECTED[correction]}"
        for learner in BACKBONES
        for correction in CORRECTIONS
    },
    "fit/nothing": "`pue fit`, nothing given",
    "fit/prior": "`pue fit`, prior given",
    "prior/estimate": "`estimate_prior`",
    "baseline/naive": "unlabeled as negative, boosting",
    "baseline/elkan-noto": "Elkan–Noto, boosting",
    "baseline/ranking": "labeled against the rest, top π, boosting",
    "ceiling/forest": "all true classes, forest",
    "ceiling/boosting": "all true classes, boosting",
    "pulearn/elkan-noto": "pulearn, Elkan–Noto, boosting",
    "pulearn/bagging": "pulearn, bagging",
    "pu-toolbox/nnpu": "pu-toolbox, nnPU",
    "pu-toolbox/elkan-noto": "pu-toolbox, Elkan–Noto",
    "pu-toolbox/pusb": "pu-toolbox, PUSB",
    "pu-toolbox/lbe": "pu-toolbox, LBE",
}
TITLES |= {f"{name}-untold": f"{TITLES[name]}, prior by Elkan–Noto" for name in TOLD}
"""As the page names them, in its order."""


def matching(patterns: Iterable[str]) -> list[str]:
    """Methods whose names fit any of the patterns, in the order of `METHODS`."""
    wanted = list(patterns)
    for pattern in wanted:
        if not any(fnmatch(name, pattern) for name in METHODS):
            raise UnknownName("method", pattern, list(METHODS))
    return [name for name in METHODS if any(fnmatch(name, pattern) for pattern in wanted)]


def installed(names: Iterable[str], missing: dict[str, str]) -> Iterator[str]:
    """Those whose library is there."""
    return (name for name in names if name.partition("/")[0] not in missing)
