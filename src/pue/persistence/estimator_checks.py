"""What code would believe without looking, above all places in arrays, checked before an estimator is used.

scikit-learn and SciPy trust their own fitted attributes. Where these come from a file they may lead out of an array; a
crash is the best that can then happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pue.errors import ModelError


def require_sound(estimator: Any) -> None:
    """Raise where an estimator, or any part of it, would look outside its arrays."""
    for part in parts(estimator):
        check = CHECKS.get(f"{type(part).__module__}.{type(part).__qualname__}")
        if check is None:
            continue
        try:
            sound = check(part)
        except Exception as error:  # attributes may be missing, or of any type
            raise ModelError(f"a stored {type(part).__name__} is damaged ({error}).") from error
        if not sound:
            raise ModelError(f"a stored {type(part).__name__} is damaged: it would read outside its arrays.")


def parts(root: Any) -> Iterator[Any]:
    """An object and everything it holds, each once."""
    seen, waiting = set(), [root]
    while waiting:
        item = waiting.pop()
        if id(item) in seen or isinstance(item, str | bytes | int | float | type | None):
            continue
        seen.add(id(item))
        yield item
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple | set):
            waiting += item
        elif isinstance(item, np.ndarray) and item.dtype == object:
            waiting += item.ravel().tolist()
        waiting += getattr(item, "__dict__", {}).values()


def _boosted_trees(model: Any) -> bool:
    if not hasattr(model, "_predictors"):
        return True
    categorical = np.asarray(model._bin_mapper.is_categorical_, dtype=bool)
    trees = [tree for stage in model._predictors for tree in stage]
    return categorical.shape == (model._n_features,) and all(_tree(tree, categorical) for tree in trees)


def _tree(tree: Any, categorical: Any) -> bool:
    nodes, sets = tree.nodes, tree.raw_left_cat_bitsets
    if nodes.ndim != 1 or len(nodes) == 0 or sets.ndim != 2 or sets.shape[1] != 8:
        return False
    places = np.flatnonzero(nodes["is_leaf"] == 0)
    splits = nodes[places]
    for child in (splits["left"].astype(np.int64), splits["right"].astype(np.int64)):
        if not ((child > places) & (child < len(nodes))).all():
            return False
    column = splits["feature_idx"]
    if not ((column >= 0) & (column < len(categorical))).all():
        return False
    by_set = splits["is_categorical"] != 0
    return bool(categorical[column[by_set]].all() and (splits["bitset_idx"][by_set] < len(sets)).all())


def _one_hot(encoder: Any) -> bool:
    if not hasattr(encoder, "categories_"):
        return True
    counts = [len(values) for values in encoder.categories_]
    groups = getattr(encoder, "_default_to_infrequent_mappings", [None] * len(counts))
    dropped = encoder._drop_idx_after_grouping
    dropped = [None] * len(counts) if dropped is None else dropped.tolist()
    for group, count, drop in zip(groups, counts, dropped, strict=True):
        if group is not None and not (len(group) == count and min(group) >= 0 and max(group) < count):
            return False
        if drop is not None and not 0 <= drop < count:
            return False
    return bool(list(encoder._n_features_outs) == encoder._compute_n_features_outs())


def _vocabulary(vectorizer: Any) -> bool:
    places = list(getattr(vectorizer, "vocabulary_", {}).values())
    return sorted(places) == list(range(len(places)))


def _spline(spline: Any) -> bool:
    type(spline)(spline.t, spline.c, spline.k, spline.extrapolate, spline.axis)  # which raises unless they match
    return True


def _pipeline(pipeline: Any) -> bool:
    if pipeline.memory is not None:
        raise ModelError("it keeps a cache, which a later fit would unpickle")
    return True


CHECKS: dict[str, Callable[[Any], bool]] = {
    "scipy.interpolate._bsplines.BSpline": _spline,
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier": _boosted_trees,
    "sklearn.feature_extraction.text.TfidfVectorizer": _vocabulary,
    "sklearn.pipeline.Pipeline": _pipeline,
    "sklearn.preprocessing._encoders.OneHotEncoder": _one_hot,
}
