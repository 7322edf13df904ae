"""The column of PU labels, however it is spelt."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pue.errors import InvalidInput, listed
from pue.estimators.vectorizer.columns import MISSING

POSITIVE, UNLABELED, NEGATIVE = 1, 0, -1
WORDS = {
    **dict.fromkeys(("positive", "true", "yes", "y"), POSITIVE),
    **dict.fromkeys(("unlabeled", "unlabelled", "false", "no", "n", *MISSING), UNLABELED),
    "negative": NEGATIVE,
}
"""In any case, with any space around them; and the numbers 1, 0 and −1."""


def parse_labels(column: pd.Series, name: str) -> NDArray[np.int8]:
    """Labels as 1 (labeled positive), 0 (unlabeled) and −1 (labeled negative).

    >>> parse_labels(pd.Series(["yes", None, "No"]), "bought").tolist()
    [1, 0, 0]
    """
    labels = meanings(column, name)
    require_both(set(np.unique(labels).tolist()), name)
    return labels


def meanings(column: pd.Series, name: str) -> NDArray[np.int8]:
    """The same of some rows, which need not hold every kind of label."""
    codes, spellings = pd.factorize(column)
    found = [_meaning(str(spelling)) for spelling in spellings]
    if strange := [str(word) for word, meaning in zip(spellings, found, strict=True) if meaning is None]:
        raise InvalidInput(
            f"label column {name!r} holds {listed(strange)}. Write 1, yes, true or positive for labeled positives and "
            "0, no, false, unlabeled or nothing for the others; or name the column that holds the labels."
        )
    labels: NDArray[np.int8] = np.array([*found, UNLABELED], np.int8)[codes]  # the code of a missing value is −1
    return labels


def _meaning(spelling: str) -> int | None:
    word = spelling.strip().casefold()
    if word in WORDS:
        return WORDS[word]
    try:
        number = float(word)
    except ValueError:
        return None
    return int(number) if number in (POSITIVE, UNLABELED, NEGATIVE) else None


def require_both(found: set[int], name: str) -> None:
    """Refuse labels from which nothing can be learnt, by the kinds there are."""
    if POSITIVE not in found:
        raise InvalidInput(f"label column {name!r} labels no row positive. Mark the known positives with 1.")
    if found == {POSITIVE, NEGATIVE}:
        raise InvalidInput(
            f"label column {name!r} holds only positives and negatives, which is ambiguous: -1 means a labeled "
            "negative here, but unlabeled in many tables. Write 0 for the unlabeled rows, or leave their cells empty."
        )
    if UNLABELED not in found:
        raise InvalidInput(
            f"label column {name!r} labels every row positive. PU learning needs unlabeled rows too; mark them with 0."
        )
