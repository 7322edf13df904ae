"""Names of the command line → classifiers: any method of `METHODS` on a network, nnPU on what `LEARNERS` names, or a
scikit-learn model."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pue.core.machine import show_bytes
from pue.errors import InvalidInput, UnknownName
from pue.estimators.classifier import PUClassifier
from pue.estimators.wrapper import PUWrapper
from pue.methods import METHODS, Composition
from pue.trees import LEARNERS

AUTO = "nnpu"
HIDDEN = ("supervised",)
"""Needs true classes."""


def _trees(seed: int) -> Any:
    return HistGradientBoostingClassifier(max_leaf_nodes=15, learning_rate=0.05, random_state=seed)


def _linear(seed: int) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


WRAPPED = {"logistic": _linear, "wrapped_boosting": _trees}


def choices() -> list[str]:
    """Every name there is now: a method added to `METHODS` is among them."""
    return sorted({*METHODS, *WRAPPED, *LEARNERS, "auto"} - set(HIDDEN))


def resolved(method: str) -> str:
    """The method that "auto" stands for."""
    return AUTO if method == "auto" else method


def require_streaming(method: str, needed: int) -> None:
    """Refuse a method that cannot learn from rows that pass by."""
    streaming = [name for name, known in METHODS.items() if isinstance(known, Composition) and name not in HIDDEN]
    if resolved(method) not in streaming:
        raise InvalidInput(
            f"the rows would take {show_bytes(needed)}, and method {method!r} needs all of them in memory. Allow as "
            f"much with --memory, use a method that streams ({', '.join(streaming)}), or fit on a part of the rows."
        )


def make_classifier(method: str, *, seed: int, epochs: int | None = None, **common: Any) -> Any:
    """A classifier that is not yet fitted; `common` goes to it as it is (prior, propensity, scenario, …)."""
    if method not in choices():
        raise UnknownName("method", method, choices())
    name = resolved(method)
    if name in WRAPPED:
        for name_of_networks in ("progress", "labeled_rows"):
            common.pop(name_of_networks, None)
        return PUWrapper(WRAPPED[name](seed), random_state=seed, **common)
    if name in LEARNERS:
        name, common["backbone"] = "nnpu", name
    return PUClassifier(name, epochs="auto" if epochs is None else epochs, random_state=seed, **common)
