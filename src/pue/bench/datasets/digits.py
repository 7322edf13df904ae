"""scikit-learn's 8×8 digits, even against odd: real, small and offline."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from pue.bench.datasets.labeled import LabeledSplit


def digits(*, seed: int = 0) -> LabeledSplit:
    """1,797 digits, stratified split; features in [0, 1].

    >>> digits().train_x.shape
    torch.Size([1257, 64])
    """
    x, classes = load_digits(return_X_y=True)
    parts = train_test_split((x / 16).astype("float32"), classes, test_size=0.3, stratify=classes, random_state=seed)
    train_x, test_x, train_classes, test_classes = map(torch.from_numpy, parts)
    return LabeledSplit("digits", train_x, train_classes, test_x, test_classes, positive=(0, 2, 4, 6, 8))
