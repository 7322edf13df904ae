"""What a crash interrupts: each makes something and can say whether what is there is whole, and which turn made it."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from ground import Ground, record

import pue
from pue.app.audit.record import plan_path, read_record
from pue.app.audit.sheet import read_sheet
from pue.app.cli import main
from pue.bench.datasets.cache import cached
from pue.bench.record import Record
from pue.bench.spec import digest
from pue.bench.store import Entry
from pue.persistence.model import save
from pue.training.checkpoints import Snapshot, load_latest
from pue.training.checkpoints import save as save_checkpoint


def run_main(*arguments: Any) -> None:
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as end:
            sys.stderr.flush()
            if end.code:
                raise OSError(f"exit {end.code}") from None


class Save:
    """The last step of `pue fit`: a model in the place of another."""

    name = "model"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        save({"turn": np.full(500, turn), "model": pue.load(ground.folder / "linear")}, target)

    def whole(self, target: Path) -> int:
        turns = set(pue.load(target)["turn"].tolist())
        assert len(turns) == 1
        return turns.pop()


class Fit:
    """The whole command, and its page."""

    name = "fitted"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        run_main("fit", ground.folder / "t.parquet", "--label", "s", "--prior", "0.4", "--propensity", "none", "-q",
                 "--method", "logistic", "--force", "-o", target)  # fmt: skip

    def whole(self, target: Path) -> int:
        assert np.isfinite(pue.load(target).threshold)
        return -1


class Predict:
    name = "scores.csv"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        given = ["--threshold", turn / 9]
        run_main("predict", ground.folder / "linear", ground.folder / "t.parquet", "-o", target, *given)

    def whole(self, target: Path) -> int:
        frame = pd.read_csv(target)
        assert len(frame) == 60
        assert np.isfinite(frame["probability"]).all()
        return -1


class Page:
    name = "page.html"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        run_main("report", ground.folder / "linear", "-o", target)

    def whole(self, target: Path) -> int:
        assert target.read_text().rstrip().endswith("</html>")
        return -1


class Diagnose(Page):
    name = "diagnosis.html"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        known = ["--label", "s", "--prior", "0.4", "--propensity", "none", "-q"]
        run_main("diagnose", ground.folder / "t.parquet", *known, "-o", target)


class AnswerPage(Page):
    name = "answers.html"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        run_main("audit", "page", ground.folder / "sheet.csv", "-o", target)


class Plan:
    """A sheet, which is never replaced, and the plan beside it."""

    name = "to_check.csv"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        if not target.exists():
            model, rows = ground.folder / "linear", ground.folder / "t.parquet"
            run_main("audit", "plan", model, rows, "-n", 12, "-q", "-o", target)

    def whole(self, target: Path) -> int:
        assert plan_path(target).exists()
        assert read_sheet(target, read_record(target)).absent == 0
        return -1


class Bench:
    """A record, computed under its claim."""

    name = "record.json"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        body = Record.from_dict({**record(), "n_labeled": turn})
        entry = Entry(target, digest(record()["spec"]), Record)
        with entry.claim(wait=True):
            entry.write(body)

    def whole(self, target: Path) -> int:
        found = Entry(target, digest(record()["spec"]), Record).read()
        assert found is not None
        return found.n_labeled


class Checkpoint:
    name = "run"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        import torch

        load_latest(target, "print")  # as every run does first
        save_checkpoint(target, Snapshot(turn, {"w": torch.full((100,), float(turn))}, {}, "print"))

    def whole(self, target: Path) -> int:
        found = load_latest(target, "print")
        assert found is not None
        assert set(found.tensors["w"].tolist()) == {float(found.epoch)}
        return found.epoch


class Cache:
    name = "cache"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        os.environ["PUE_CACHE"] = str(target)
        assert np.array_equal(cached("crash", str(turn), lambda: np.arange(50)), np.arange(50))

    def whole(self, target: Path) -> int:
        return -1


class Compare:
    """Results of candidates, one file each."""

    name = "comparison"

    def make(self, ground: Ground, target: Path, turn: int) -> None:
        run_main("compare", ground.folder / "t.parquet", "--label", "s", "--prior", "0.4", "--propensity", "none", "-q",
                 "--candidates", "logistic", "--out", target)  # fmt: skip

    def whole(self, target: Path) -> int:
        return -1


COMMANDS = {
    type(command).__name__: command
    for command in (Save(), Fit(), Predict(), Page(), Diagnose(), AnswerPage(), Plan(), Bench(), Checkpoint(), Cache(),
                    Compare())
}  # fmt: skip
