"""From what users bring (NumPy, pandas, torch, SciPy-sparse) to what the library computes with, checked on the way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import Tensor

from pue.core.data import (
    Features,
    PUData,
    Scenario,
    infinite_columns,
    non_finite_columns,
    require_propensity,
    require_vector,
    select,
)
from pue.core.finite import LARGEST, large_cells, non_finite_rows
from pue.errors import InvalidInput, shown

CHANNELS = (1, 3, 4)
"""Of an image: gray, colors, colors and transparency."""


def to_numpy(values: Any) -> Any:
    """Tensors as arrays (no copy on the CPU; NumPy has no bfloat16, which is widened), everything else as it is."""
    if not isinstance(values, Tensor):
        return values
    found = values.detach().cpu()
    return (found.float() if found.dtype is torch.bfloat16 else found).numpy()


def as_features(X: Any, names: Sequence[str] | None = None, *, missing: bool = False) -> Features:
    """A validated array or CSR matrix as features: uint8 stays, other integers become float64; finite, or an error
    that names the columns. Where values may be `missing`, NaN is allowed too. Images become (n, channels, height,
    width).
    """
    if sparse.issparse(X):
        x: Features = X.astype(_float_type(X.dtype), copy=False)
    else:
        kept = X if X.dtype == np.uint8 else X.astype(_float_type(X.dtype), copy=False)
        x = torch.from_numpy(np.require(channels_first(kept), requirements=["C", "W"]))
    bad = infinite_columns(x) if missing else non_finite_columns(x)
    if bad:
        where = _where(bad, non_finite_rows(x, missing=missing), names)
        if missing:
            raise InvalidInput(f"X contains infinity in {where}. Code missing values as NaN.")
        raise InvalidInput(
            f"X contains NaN or infinity in {where}. Impute or drop them, for example with "
            "sklearn.impute.SimpleImputer in a Pipeline."
        )
    rows, columns = large_cells(x)
    if rows:
        raise InvalidInput(
            f"X holds numbers beyond {LARGEST:g} in {_where(columns, rows, names)}, with which scores overflow. Where "
            "they mark missing values code these as NaN and impute them; else rescale the column."
        )
    return x


def channels_first(images: NDArray[Any]) -> NDArray[Any]:
    """Gray images get the axis that everything after takes them to have; channels that come last, as Pillow, OpenCV
    and most image files have them, come first. Other arrays are left as they are.

    >>> [channels_first(np.zeros(shape)).shape for shape in [(9, 28, 28), (9, 28, 28, 3), (9, 3, 28, 28), (9, 4)]]
    [(9, 1, 28, 28), (9, 3, 28, 28), (9, 3, 28, 28), (9, 4)]
    """
    if images.ndim == 3:
        return images[:, None]
    if images.ndim == 4 and images.shape[1] not in CHANNELS and images.shape[3] in CHANNELS:
        return images.transpose(0, 3, 1, 2)
    return images


def _where(columns: Sequence[int], rows: Sequence[int], names: Sequence[str] | None) -> str:
    called = [column if names is None else names[column] for column in columns]
    return f"column(s) {shown(called)} (row(s) {shown(rows)})"


def as_problem(
    X: Any, s: Any = None, scenario: str | Scenario = "single_sample", *, names: Sequence[str] | None = None
) -> PUData:
    """Features and PU labels, or a `PUData` alone, as a `PUData`; errors call columns by `names`.

    >>> as_problem([[0.5], [1.5]], [1, 0]).n_labeled
    1
    """
    if isinstance(X, PUData):
        if s is not None:
            raise InvalidInput("a PUData has its own labels: pass it alone, or features and labels.")
        return X
    checked = check_array(to_numpy(X), accept_sparse="csr", allow_nd=True, ensure_all_finite=False, dtype="numeric")
    x = as_features(checked, names or column_names(X))
    return PUData(x, torch.from_numpy(np.array(as_label_array(s, x.shape[0]))), Scenario.parse(scenario))


def column_names(X: Any) -> list[str] | None:
    """What a frame calls its columns; None for what is no frame."""
    return [str(column) for column in X.columns] if hasattr(X, "columns") else None


def as_label_array(y: Any, n_rows: int) -> NDArray[Any]:
    """PU labels as a numeric vector of the right length; which values they may hold is for `PUData` to say."""
    if y is None:
        raise InvalidInput("the estimator requires y to be passed, but the target y is None. Pass the PU labels.")
    labels: NDArray[Any] = column_or_1d(to_numpy(y), warn=True)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InvalidInput("Input y contains NaN or infinity. Labels are 1, 0 or -1; code missing labels as 0.")
    check_classification_targets(labels)
    if labels.dtype.kind not in "biuf":
        raise InvalidInput(
            "labels must be 1 (labeled positive), 0 (unlabeled) or -1 (labeled negative); got values of type "
            f"{labels.dtype}. Recode them, for example with (column == 'yes').astype(int)."
        )
    found = np.unique(labels)
    if len(found) > 2 and not np.isin(found, [-1, 0, 1]).all():
        raise InvalidInput(
            "Only binary classification is supported. The type of the target is multiclass. Labels must be 1 (labeled "
            "positive), 0 (unlabeled) or -1 (labeled negative)."
        )
    if n_rows != len(labels):
        raise InvalidInput(f"X has {n_rows} rows but y has {len(labels)}. Pass one label for every row.")
    return labels


def as_propensity(propensity: Any, labels: NDArray[Any]) -> Tensor:
    """Known propensities, given for labeled rows or for all rows, as a vector over all rows (NaN off the labeled)."""
    values = torch.as_tensor(np.asarray(to_numpy(propensity), dtype=np.float64))
    require_vector("propensity", values)
    labeled = torch.from_numpy(labels == 1)
    if len(values) == len(labels):
        values = values[labeled]
    require_propensity(values, int(labeled.sum()))
    full = torch.full((len(labels),), torch.nan, dtype=torch.float64)
    full[labeled] = values
    return full


def as_pu_data(
    x: Features,
    labels: NDArray[Any],
    scenario: str,
    sample_weight: NDArray[np.float64] | None,
    propensity: Tensor | None,
) -> tuple[PUData, Tensor | None]:
    """The data without rows of weight zero, and the known propensities (NaN where unknown) of its rows."""
    weight = None
    if sample_weight is not None:
        weight = torch.from_numpy(np.array(sample_weight))
        kept = weight > 0
        if not bool(kept.all()):
            x, labels, weight = select(x, kept), labels[kept.numpy()], weight[kept]
            propensity = None if propensity is None else propensity[kept]
    data = PUData(x, torch.from_numpy(np.array(labels)), Scenario.parse(scenario), weight)
    return data, propensity


def _float_type(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    return np.float32 if dtype in (np.float16, np.float32) else np.float64
