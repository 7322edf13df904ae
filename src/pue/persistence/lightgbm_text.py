"""LightGBM's trees are text that its C++ code believes: its sizes, children and columns are checked here first."""

from __future__ import annotations

import re
from itertools import pairwise

from pue.errors import ModelError

_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|[-+]?inf|[-+]?nan", re.IGNORECASE | re.ASCII)
_WHOLE = re.compile(r"-?[0-9]{1,9}")
_OBJECTIVE = re.compile(r"(binary|cross_entropy|regression)( [a-z_]+(:[-+.0-9e]+)?)*")
"""Those of one score a row: others write as many scores as they say, wherever that leads."""
_HEADER = {"version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "objective",
           "feature_names", "feature_infos", "tree_sizes", "monotone_constraints"}  # fmt: skip
_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
_SPLITS = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child",
           "internal_value", "internal_weight", "internal_count")  # fmt: skip
_TREE = {*_LEAVES, *_SPLITS, "num_leaves", "num_cat", "cat_boundaries", "cat_threshold", "is_linear", "shrinkage"}


def check_text(text: str) -> None:
    """Raise unless every number that LightGBM uses as a place lies where it should."""
    trees, end, _ = text.partition("end of trees\n")
    _require(bool(end) and text.replace("\n", "").isprintable(), "its text is cut off")
    first, *blocks = re.split(r"(?m)^(?=Tree=[0-9]+$)", trees)
    kind, _, header_lines = first.partition("\n")
    header = _entries(header_lines, _HEADER)
    columns = _whole(header, "max_feature_idx") + 1
    _require(kind == "tree" and columns > 0, "it does not begin with a header")
    _require(_whole(header, "num_class") == _whole(header, "num_tree_per_iteration") == 1, "it has several classes")
    _require(bool(_OBJECTIVE.fullmatch(header.get("objective", "binary"))), "its objective has no single score")
    for name in ("feature_names", "feature_infos"):
        _require(len(header.get(name, "").split(" ")) == columns, f"{name} are not those of {columns} columns")
    sizes = [len(block.encode()) for block in blocks]
    _require(_wholes(header.get("tree_sizes", ""), "tree_sizes") == sizes, "tree_sizes are not those of its trees")
    for place, block in enumerate(blocks):
        number, _, lines = block.partition("\n")
        _require(number == f"Tree={place}", "its trees are not numbered")
        _check_tree(_entries(lines, _TREE), columns)


def _check_tree(tree: dict[str, str], columns: int) -> None:
    leaves, categories = _whole(tree, "num_leaves"), _whole(tree, "num_cat")
    sound = leaves >= 1 and categories >= 0 and tree.get("is_linear", "0") == "0"
    _require(sound, "a tree has no leaves, or is linear")
    splits = leaves - 1
    for name, length in [*((name, leaves) for name in _LEAVES), *((name, splits) for name in _SPLITS)]:
        found = tree.get(name, "").split()
        optional = name not in tree and (splits == 0 or name not in (*_SPLITS[:6], "leaf_value"))
        _require(optional or len(found) == length or (splits == 0 and len(found) <= 1), f"{name} has another length")
        _require(all(_NUMBER.fullmatch(number) for number in found), f"{name} holds what is no number")
    if splits == 0:
        return
    for name in ("left_child", "right_child"):
        for place, child in enumerate(_wholes(tree[name], name)):
            _require(place < child < splits or -leaves <= child < 0, f"{name} leads out of the tree, or back")
    _require(all(0 <= column < columns for column in _wholes(tree["split_feature"], "split_feature")), "no such column")
    _check_categories(tree, categories)


def _check_categories(tree: dict[str, str], categories: int) -> None:
    bounds = _wholes(tree.get("cat_boundaries", "0"), "cat_boundaries")
    values = tree.get("cat_threshold", "").split()
    _require(len(bounds) == categories + 1 and bounds[0] == 0, "cat_boundaries are not those of its categories")
    _require(all(low <= high for low, high in pairwise(bounds)) and bounds[-1] == len(values), "cat_threshold is cut")
    _require(all(re.fullmatch(r"[0-9]{1,10}", value) for value in values), "cat_threshold holds what is no set")
    for decision, threshold in zip(tree["decision_type"].split(), tree["threshold"].split(), strict=True):
        _require(bool(_WHOLE.fullmatch(decision)) and 0 <= int(decision) < 16, "decision_type is none")
        if int(decision) & 1:
            known = bool(_WHOLE.fullmatch(threshold)) and 0 <= int(threshold) < categories
            _require(known, "no such set of categories")


def _entries(lines: str, allowed: set[str]) -> dict[str, str]:
    pairs = [line.partition("=")[::2] for line in lines.split("\n") if line]
    found = dict(pairs)
    _require(len(found) == len(pairs) and set(found) <= allowed, "it has entries that are unknown or stand twice")
    return found


def _whole(entries: dict[str, str], name: str) -> int:
    values = _wholes(entries.get(name, ""), name)
    _require(len(values) == 1, f"{name} is missing")
    return values[0]


def _wholes(text: str, name: str) -> list[int]:
    words = text.split()
    _require(all(_WHOLE.fullmatch(word) for word in words), f"{name} holds what is no whole number")
    return [int(word) for word in words]


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ModelError(f"a LightGBM model cannot be loaded: {what}. The model is damaged.")
