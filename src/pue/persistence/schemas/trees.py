"""Schemas of trees, forests and histogram boosting: nodes as arrays, one tree after the other.

scikit-learn's compiled code follows children and columns without looking, so that each of them is looked at here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray

from pue.errors import ModelError
from pue.persistence.schemas.columns import Categories
from pue.persistence.schemas.parts import Classes, Count, Numbers, Part, Sizes, Words, require
from pue.persistence.schemas.schema import FEATURES, NAMED, Schema, Values

NODE = {"left_child": "int64", "right_child": "int64", "feature": "int64", "threshold": "float64",
        "impurity": "float64", "n_node_samples": "int64", "weighted_n_node_samples": "float64",
        "missing_go_to_left": "uint8"}  # fmt: skip
HIST = {"value": "float64", "count": "uint32", "feature_idx": "int64", "num_threshold": "float64",
        "missing_go_to_left": "uint8", "left": "uint32", "right": "uint32", "gain": "float64", "depth": "uint32",
        "is_leaf": "uint8", "bin_threshold": "uint8", "is_categorical": "uint8", "bitset_idx": "uint32"}  # fmt: skip
FREE = ("impurity", "num_threshold", "gain", "threshold")
"""Of a leaf they say nothing, and may be infinite or NaN."""
MOST_NODES = 2**31
TREE_SIZES: dict[str, Part] = {"sizes": Numbers(("trees",), 1, MOST_NODES, types=("int64",))}


def _fields(layout: dict[str, str]) -> dict[str, Part]:
    return {f"node {name}": Numbers(("nodes",), types=(kind,), infinite=name in FREE, missing=name in FREE)
            for name, kind in layout.items()}  # fmt: skip


def _nodes(trees: list[NDArray[Any]], layout: dict[str, str]) -> Values:
    """The fields of all nodes, and how many nodes each tree has."""
    if set(layout) != set(trees[0].dtype.names or ()):
        raise ModelError("this version of scikit-learn has other nodes than pue knows. Upgrade pue, or scikit-learn.")
    together = np.concatenate(trees)
    stored = {f"node {name}": np.ascontiguousarray(together[name]) for name in layout}
    return {"sizes": np.array([len(tree) for tree in trees], dtype=np.int64), **stored}


def _starts(found: Values, nodes: int, at: str) -> NDArray[np.int64]:
    """The first node of each tree, if the sizes are those of the nodes; summed so that nothing overflows."""
    sizes = found["sizes"]
    require(len(sizes) > 0 and sum(sizes.tolist()) == nodes, at, "should have as many nodes as its trees together")
    return np.concatenate([[0], np.cumsum(sizes)])


def _require_children(left: Any, right: Any, inner: Any, starts: NDArray[np.int64], at: str) -> None:
    """Each child comes after its parent and in the same tree, so that every walk ends at a leaf of it."""
    sizes = np.diff(starts)
    own = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    last = np.repeat(sizes, sizes)
    for child in (np.asarray(left, dtype=np.int64)[inner], np.asarray(right, dtype=np.int64)[inner]):
        require(((child > own[inner]) & (child < last[inner])).all(), at, "has a node that leads out of its tree")


def _split(found: Values, layout: dict[str, str], starts: NDArray[np.int64], dtype: Any) -> list[NDArray[Any]]:
    nodes = np.zeros(starts[-1], dtype=dtype)
    for name in layout:
        nodes[name] = found.pop(f"node {name}")
    return [np.ascontiguousarray(nodes[a:b]) for a, b in pairwise(starts)]


# ---------------------------------------------------------------------------------------------- forests


def _tree_entries(trees: list[Any]) -> Values:
    states = [tree.__getstate__() for tree in trees]
    return {
        **_nodes([state["nodes"] for state in states], NODE),
        "depths": np.array([state["max_depth"] for state in states], dtype=np.int64),
        "shares": np.concatenate([state["values"][:, 0, :] for state in states]),
    }


def _trees(found: Values, at: str) -> list[Any]:
    """scikit-learn's own trees, of nodes that were checked."""
    from sklearn.tree._tree import NODE_DTYPE, Tree

    shares, p, k = found.pop("shares"), found["n_features_in_"], len(found["classes_"])
    starts = _starts(found, len(shares), at)
    left, right, feature = (found[f"node {name}"] for name in ("left_child", "right_child", "feature"))
    inner = left != -1
    require(((right != -1) == inner).all(), at, "has a node with one child")
    _require_children(left, right, inner, starts, at)
    require(((feature[inner] >= 0) & (feature[inner] < p)).all(), at, "asks for a column that is not there")
    require(not np.isnan(found["node threshold"][inner]).any(), at, "has a node without a threshold")
    depths, sizes = found.pop("depths"), found.pop("sizes")
    require((depths < sizes).all(), at, "is deeper than it has nodes")
    built = []
    for place, nodes in enumerate(_split(found, NODE, starts, NODE_DTYPE)):
        values = np.ascontiguousarray(shares[starts[place] : starts[place + 1]][:, None, :])
        tree = Tree(p, np.array([k], dtype=np.intp), 1)
        state = {"max_depth": int(depths[place]), "node_count": len(nodes), "nodes": nodes, "values": values}
        tree.__setstate__(state)
        built.append(tree)
    return built


def _one_output(model: Any) -> None:
    if model.n_outputs_ != 1:
        raise ModelError(f"a {type(model).__name__} of several outputs cannot be saved. Fit one for each output.")


def _tree_taken(model: Any) -> Values:
    _one_output(model)
    return _tree_entries([model.tree_])


def _tree_built(model: Any, found: Values) -> Values:
    trees = _trees(found, type(model).__name__)
    require(len(trees) == 1, type(model).__name__, "should be one tree")
    k = len(found["classes_"])
    return {**found, "n_outputs_": 1, "n_classes_": np.int64(k), "tree_": trees[0]}


def _forest_taken(forest: Any) -> Values:
    _one_output(forest)
    seeds = [tree.random_state if isinstance(tree.random_state, int) else -1 for tree in forest.estimators_]
    return {**_tree_entries([tree.tree_ for tree in forest.estimators_]),
            "seeds": np.array(seeds, dtype=np.int64), "max_features_": forest.estimators_[0].max_features_}  # fmt: skip


def _forest_built(forest: Any, found: Values) -> Values:
    seeds, columns = found.pop("seeds"), found.pop("max_features_")
    trees = _trees(found, type(forest).__name__)
    k, p = len(found["classes_"]), found["n_features_in_"]
    require(len(seeds) == len(trees), type(forest).__name__, "should have a seed for each tree")
    forest.estimator_ = forest.estimator
    members = []
    for tree, seed in zip(trees, seeds.tolist(), strict=True):
        member = forest._make_estimator(append=False)
        member.random_state = None if seed < 0 else seed
        # A forest's trees learn the places of the classes, as scikit-learn has it.
        vars(member).update(n_features_in_=p, n_outputs_=1, classes_=np.arange(k, dtype=np.float64),
                            n_classes_=np.int64(k), max_features_=columns, tree_=tree)  # fmt: skip
        members.append(member)
    return {**found, "n_outputs_": 1, "n_classes_": k, "estimator_": forest.estimator, "estimators_": members}


NODES = {**TREE_SIZES, **_fields(NODE), "depths": Numbers(("trees",), 0, MOST_NODES, types=("int64",)),
         "shares": Numbers(("nodes", "k"))}  # fmt: skip
ONE = {**FEATURES, "classes_": Classes(), "max_features_": Count(1, 2**31), **NODES}
FOREST = {**ONE, "seeds": Numbers(("trees",), -1, types=("int64",))}
OUT_OF_BAG: dict[str, Part] = {**NAMED, "oob_score_": Numbers(()),
                               "oob_decision_function_": Numbers(("rows", "k"), missing=True)}  # fmt: skip

# ---------------------------------------------------------------------------------------------- boosting


def _boosting_taken(model: Any) -> Values:
    trees = [tree for stage in model._predictors for tree in stage]
    thresholds = model._bin_mapper.bin_thresholds_
    encoder = None if model._preprocessor is None else model._preprocessor.named_transformers_["encoder"]
    if encoder is not None and any(values.dtype.kind not in "fiub" for values in encoder.categories_):
        raise ModelError(
            "a HistGradientBoostingClassifier of words cannot be saved. Turn them into numbers first (OrdinalEncoder)."
        )
    return {
        **_nodes([tree.nodes for tree in trees], HIST),
        "sets": np.array([len(tree.raw_left_cat_bitsets) for tree in trees], dtype=np.int64),
        "raw sets": np.concatenate([tree.raw_left_cat_bitsets for tree in trees]).astype(np.uint32),
        "binned sets": np.concatenate([tree.binned_left_cat_bitsets for tree in trees]).astype(np.uint32),
        "bins": np.array([len(values) for values in thresholds], dtype=np.int64),
        "thresholds": np.concatenate([np.asarray(values, dtype=np.float64) for values in thresholds]),
        "filled bins": np.asarray(model._bin_mapper.n_bins_non_missing_, dtype=np.uint32),
        "categories": None if encoder is None else encoder.categories_,
    }


def _boosting_built(model: Any, found: Values) -> Values:
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    at, p, k = "HistGradientBoostingClassifier", found["n_features_in_"], len(found["classes_"])
    per_stage = found["n_trees_per_iteration_"]
    require(per_stage == (1 if k == 2 else k), at, "should have a tree for each class")
    categorical, preprocessor = _categorical(model, found, at)
    values = _mapped(model, found, categorical, at)
    starts = _starts(found, len(found["node left"]), at)
    ends = np.concatenate([[0], np.cumsum(found["sets"])])
    raw, binned = found.pop("raw sets"), found.pop("binned sets")
    require(sum(found["sets"].tolist()) == len(raw), at, "should have as many sets as its trees together")
    _require_splits(found, starts, np.zeros(p, dtype=bool) if categorical is None else categorical, at)
    found.pop("sizes"), found.pop("sets")
    trees = [
        TreePredictor(nodes, binned[a:b].copy(), raw[a:b].copy())
        for nodes, a, b in zip(_split(found, HIST, starts, PREDICTOR_RECORD_DTYPE), ends[:-1], ends[1:], strict=True)
    ]
    require(len(trees) % per_stage == 0, at, "should have whole stages")
    labels = sklearn.preprocessing.LabelEncoder()
    labels.classes_ = found["classes_"]
    loss = sklearn._loss.HalfBinomialLoss() if k == 2 else sklearn._loss.HalfMultinomialLoss(n_classes=k)
    return {
        **found,
        **values,
        "_preprocessor": preprocessor,
        "_is_categorical_remapped": categorical,
        "_label_encoder": labels,
        "_n_features": p,
        "_loss": loss,
        "_scorer": None,
        "_predictors": [trees[start : start + per_stage] for start in range(0, len(trees), per_stage)],
    }


def _require_splits(found: Values, starts: NDArray[np.int64], categorical: NDArray[np.bool_], at: str) -> None:
    inner = found["node is_leaf"] == 0
    column, sets = found["node feature_idx"], np.repeat(found["sets"], np.diff(starts))
    _require_children(found["node left"], found["node right"], inner, starts, at)
    require(((column[inner] >= 0) & (column[inner] < len(categorical))).all(), at, "asks for a column it has not")
    require(not np.isnan(found["node num_threshold"][inner]).any(), at, "has a node without a threshold")
    by_set = inner & (found["node is_categorical"] != 0)
    sound = categorical[column[by_set]].all() and (found["node bitset_idx"][by_set] < sets[by_set]).all()
    require(sound, at, "asks for a set of categories it has not")


def _categorical(model: Any, found: Values, at: str) -> tuple[NDArray[np.bool_] | None, Any]:
    """Which columns of the rows that trees see are categories (these come first), and what brings rows into that
    order: fitted by scikit-learn itself on rows that hold each category once."""
    which, categories = found["is_categorical_"], found.pop("categories")
    require((which is None) == (categories is None), at, "should say which columns are categories")
    if which is None:
        return None, None
    require(which.any() and which.sum() == len(categories), at, "should have the categories of each such column")
    Categories().checked(categories, {"p": len(categories)}, at)
    require(all(v.dtype.kind in "fiub" and len(v) <= 256 for v in categories), at, "should have few categories")
    rows = np.zeros((max(map(len, categories)), len(which)))
    for column, values in zip(np.flatnonzero(which), categories, strict=True):
        rows[:, column] = values[np.minimum(np.arange(len(rows)), len(values) - 1)]
    fresh = type(model)(categorical_features=which, max_bins=model.max_bins)
    fresh._preprocess_X(rows, reset=True)
    if "feature_names_in_" in found:
        fresh._preprocessor.feature_names_in_ = found["feature_names_in_"]
    return fresh._is_categorical_remapped, fresh._preprocessor


def _mapped(model: Any, found: Values, categorical: NDArray[np.bool_] | None, at: str) -> Values:
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

    bins, flat, p = found.pop("bins"), found.pop("thresholds"), found["n_features_in_"]
    require(sum(bins.tolist()) == len(flat), at, "should have as many thresholds as its columns together")
    thresholds = np.split(flat, np.cumsum(bins)[:-1])
    which = np.zeros(p, dtype=bool) if categorical is None else categorical
    for values in (thresholds[column] for column in np.flatnonzero(which)):
        require(((values >= 0) & (values < 256) & (values == np.floor(values))).all(), at, "has unknown categories")
    known = None if categorical is None else [v if c else None for c, v in zip(which, thresholds, strict=True)]
    mapper = _BinMapper(n_bins=model.max_bins + 1, is_categorical=categorical, known_categories=known, n_threads=1)
    mapper.bin_thresholds_, mapper.is_categorical_ = thresholds, which.astype(np.uint8)
    mapper.missing_values_bin_idx_, mapper.n_bins_non_missing_ = model.max_bins, found.pop("filled bins")
    return {"_bin_mapper": mapper}


def _default_loss(model: Any) -> None:
    words = isinstance(model.categorical_features, str) or model.categorical_features is None
    numbers = not words and all(isinstance(entry, int | np.integer) for entry in model.categorical_features)
    require(words or numbers, "HistGradientBoostingClassifier", "should name its categories by number")


class _Maybe:
    """Categories, or none."""

    def checked(self, value: Any, sizes: Sizes, at: str) -> Any:
        require(value is None or type(value) is list, at, "should be a list")
        return value


SETS = Numbers(("sets", 8), types=("uint32",))
BOOSTING: dict[str, Part] = {
    **FEATURES, "classes_": Classes(), "n_trees_per_iteration_": Count(1, 2**20, "stage"),
    "_baseline_prediction": Numbers((1, "stage")), "do_early_stopping_": Words((True, False)),
    "is_categorical_": Numbers(types=("bool",), optional=True),
    "train_score_": Numbers(("s",), infinite=True, missing=True),
    "validation_score_": Numbers(("v",), infinite=True, missing=True),
    "bins": Numbers(low=0, high=256, types=("int64",)),
    "thresholds": Numbers(("bounds",), types=("float64",), infinite=True),
    "filled bins": Numbers(high=256, types=("uint32",)), "categories": _Maybe(),
    **TREE_SIZES, **_fields(HIST), "sets": Numbers(("trees",), 0, MOST_NODES, types=("int64",)),
    "raw sets": SETS, "binned sets": SETS,
}  # fmt: skip

_TREE_REBUILT = ("n_outputs_", "n_classes_", "tree_")
_FOREST_REBUILT = ("n_outputs_", "n_classes_", "estimator", "estimator_", "estimators_", "estimator_params",
                   "_n_samples", "_n_samples_bootstrap", "_sample_weight", "class_weight")  # fmt: skip

TREES = [
    *(Schema(f"sklearn.tree:{name}", ONE, rebuilt=_TREE_REBUILT, take=_tree_taken, build=_tree_built)
      for name in ("DecisionTreeClassifier", "ExtraTreeClassifier")),
    *(Schema(f"sklearn.ensemble:{name}", FOREST, OUT_OF_BAG, rebuilt=_FOREST_REBUILT, take=_forest_taken,
             build=_forest_built)
      for name in ("RandomForestClassifier", "ExtraTreesClassifier")),
    Schema("sklearn.ensemble:HistGradientBoostingClassifier", BOOSTING,
           rebuilt=("_preprocessor", "_is_categorical_remapped", "_label_encoder", "_random_seed",
                    "_feature_subsample_rng", "_n_features", "_loss", "_use_validation_data", "_bin_mapper",
                    "_predictors", "_scorer", "_fitted_with_sw", "_in_fit"),
           take=_boosting_taken, build=_boosting_built, check=_default_loss),
]  # fmt: skip
