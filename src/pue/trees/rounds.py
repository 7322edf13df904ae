"""Sums of trees that LightGBM grows round by round, each on the rows of all folds but one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pue.trees.gradient import Floats, Weighted

Mask = NDArray[np.bool_]


class Table:
    """Rows in LightGBM's bins, computed once for all sums."""

    def __init__(self, matrix: NDArray[Any], settings: Mapping[str, Any]) -> None:
        import lightgbm

        self.settings = {**settings, "objective": "none", "metric": "none", "verbosity": -1, "deterministic": True,
                         "force_row_wise": True, "feature_pre_filter": False, "min_data_in_leaf": 1}  # fmt: skip
        self._rows = lightgbm.Dataset(matrix, np.zeros(len(matrix)), params=self.settings).construct()

    def part(self, rows: Mask) -> Any:
        return self._rows.subset(np.flatnonzero(rows).tolist(), params=self.settings).construct()


class Sum:
    """One sum of trees: it grows on some rows and is judged by the others, which are held out.

    Both parts have the weight of the whole, so that their risks are of one scale.
    """

    def __init__(self, table: Table, weights: Weighted, held_out: Mask, start: float, seed: int) -> None:
        import lightgbm

        self._start, self._own, self._held_out = start, weights.part(~held_out), weights.part(held_out)
        self._trees = lightgbm.Booster({**table.settings, "seed": seed % 2**31}, table.part(~held_out))
        if held_out.any():
            self._trees.add_valid(table.part(held_out), "held out")

    def step(self) -> None:
        """One more tree, if there is a split that lowers the risk."""
        self._trees.update(fobj=lambda scores, _: self._own.gradient(self._start + scores))

    def held_out(self) -> tuple[Floats, float]:
        """Scores of the rows held out, and their risk."""
        found = []

        def judge(scores: Floats, _: Any) -> tuple[str, float, bool]:
            found.append(self._start + scores)
            return "risk", self._held_out.risk(found[0]), False

        risk: float = self._trees.eval_valid(judge)[0][2]
        return found[0], risk

    @property
    def n_trees(self) -> int:
        return int(self._trees.current_iteration())

    def text(self, n_trees: int) -> str:
        """The first trees as LightGBM writes them, without what it knows of the rows."""
        return str(self._trees.model_to_string(num_iteration=n_trees)) if n_trees else ""
