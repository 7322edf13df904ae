"""What the cases alter: models of several kinds, a table, a record, a checkpoint; made once."""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
import typer.main

from pue.app import compare
from pue.app.cli import main
from pue.app.compare import Result
from pue.bench.spec import SCHEMA, digest
from pue.bench.store import as_text
from pue.core.data import PUData
from pue.core.risks import nnpu
from pue.core.weights import uniform
from pue.persistence.sealed import sealed
from pue.training import Batching, Checkpointing, Training, train


@dataclass(frozen=True)
class Ground:
    """What the cases alter: made once, by `prepare`."""

    folder: Path

    @property
    def now(self) -> Path:
        """Where cases write."""
        (self.folder / "now").mkdir(exist_ok=True)
        return self.folder / "now"

    def fresh(self, name: str) -> Path:
        """A copy to alter, in the place of the one before."""
        target = self.now / name
        shutil.rmtree(target, ignore_errors=True)
        target.unlink() if target.is_file() else None
        source = self.folder / name
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        return target


def table(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    y = np.arange(n) % 5 < 2
    return pd.DataFrame(
        {
            "a": rng.normal(size=n) + 2 * y,
            "b": np.where(np.arange(n) % 7 == 0, np.nan, np.arange(n) % 11),
            "c": np.where(np.arange(n) % 3 == 0, "red", "blue"),
            "d": pd.date_range("2024-01-01", periods=n),
            "s": (np.arange(n) % 5 == 0).astype(int),
        }
    )


RUN = {"schema": SCHEMA, "dataset": "digits", "seed": 0, "method": "nnpu", "propensity": "none"}


def record() -> dict[str, Any]:
    metrics = dict.fromkeys(("accuracy", "precision", "recall", "f1", "auc", "ap", "auc_hard", "ap_hard"), 0.5)
    cost = {"wall_seconds": 1.0, "cpu_seconds": 1.0, "flops": 1, "peak_memory_bytes": 1}
    return {"schema": SCHEMA, "key": digest(RUN), "spec": RUN, "row": "nnPU", "metrics": metrics,
            "history": [{"epoch": 0, "risk": 0.5}], "propensity": None, "prior": 0.4, "n_labeled": 9, "n_unlabeled": 9,
            "data": {"name": "digits", "checksum": "0"}, "warnings": [], "versions": {"pue": "0"}, "cost": cost,
            "finished": "2025-01-01"}  # fmt: skip


def result() -> Result:
    return Result("upu", 1.0, dict.fromkeys(compare.ESTIMATED, (0.5, 0.4, 0.6)))


MODELS = {
    "forest": ["--method", "forest"],
    "blend": ["--method", "blend"],
    "network": ["--method", "upu", "--epochs", "1"],
    "linear": ["--method", "logistic"],
    "trees": ["--method", "wrapped_boosting"],
}


def prepare(folder: Path) -> Ground:
    """Models of several kinds (or of those that PUE_FUZZ_MODELS names), a table, a record, a checkpoint and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    table().to_parquet(folder / "t.parquet")
    for name in os.environ.get("PUE_FUZZ_MODELS", "").split() and list(MODELS):
        if name not in os.environ["PUE_FUZZ_MODELS"].split():
            del MODELS[name]
    for name, options in MODELS.items():
        if not (folder / name).exists():
            command(["fit", folder / "t.parquet", "--label", "s", "--prior", "0.4", "--propensity", "none", *options,
                     "-q", "-o", folder / name])  # fmt: skip
    sheet = folder / "sheet.csv"
    if not sheet.exists():
        command(["audit", "plan", folder / "linear", folder / "t.parquet", "-n", "12", "-q", "-o", sheet])
        head, *rows = sheet.read_text("utf-8-sig").splitlines()
        sheet.write_text("\n".join([head, *(row.replace(",,", ",yes,") for row in rows)]))
    (folder / "record.json").write_text(as_text(record()))
    (folder / "result.json").write_text(json.dumps(sealed(compare._plain(result()))))
    if not (folder / "run").exists():
        trained(folder / "run")
    return Ground(folder)


typer.main.get_command = functools.cache(typer.main.get_command)  # built anew for each call, it takes longest of all


def command(arguments: list[Any]) -> tuple[int, str]:
    """How a command ends, and what it says; any exception but its exit passes."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
    return code, err.getvalue()


def trained(folder: Path) -> dict[str, torch.Tensor]:
    """A network after two epochs, with a checkpoint for each."""
    torch.manual_seed(0)
    x = torch.tensor(table()[["a"]].to_numpy(), dtype=torch.float32)
    data = PUData(x, torch.tensor(table()["s"].to_numpy()))
    network = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Linear(2, 1), torch.nn.Flatten(0))
    weights, recipe = uniform(data.labels, prior=0.4), Training(epochs=2, batching=Batching(32))
    train(network, data, weights, nnpu(), recipe, seed=0, checkpointing=Checkpointing(folder))
    return network.state_dict()
