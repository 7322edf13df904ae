"""The same rows and options give the same bytes, and two makers of one model are told of each other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pue.app.cli import main
from pue.app.model import load_model
from pue.files import making


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    y = rng.random(150) < 0.4
    frame = pd.DataFrame({"a": rng.normal(size=150) + 2 * y, "b": rng.choice(list("xyz"), 150)})
    frame.assign(s=(y & (rng.random(150) < 0.6)).astype(int)).to_parquet(tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


OPTIONS = ["--label", "s", "--prior", "0.4", "--method", "logistic", "--propensity", "none", "-q"]


def end(*arguments: object) -> object:
    with pytest.raises(SystemExit) as exit_:
        main([str(argument) for argument in arguments])
    return exit_.value.code


def test_a_model_is_the_same_bytes_every_time(rows: Path, tmp_path: Path) -> None:
    assert end("fit", rows, *OPTIONS, "-o", tmp_path / "one") == 0
    code = "import sys; from pue.app.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "fit", str(rows), *OPTIONS, "-o", str(tmp_path / "two")]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name
    assert load_model(tmp_path / "one").summary["created"].startswith("20")


def test_a_second_fit_of_the_same_model_is_refused_before_any_work(
    rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As another process would be: the lock belongs to whoever opened it first."""
    code = """
import sys, time
from pue.files import making
with making(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "m")], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder.stdout:
        holder.stdout.readline()
    for arguments in (["fit", rows, *OPTIONS, "-o", tmp_path / "m"],):
        assert end(*arguments) == 2
        assert "another process is writing" in capsys.readouterr().err
    holder.kill()
    holder.wait()
    assert end("fit", rows, *OPTIONS, "-o", tmp_path / "m") == 0
    assert sorted(os.listdir(tmp_path)) == ["m", "t.parquet"]
    with making(tmp_path / "m"):
        assert end("predict", tmp_path / "m", rows, "-o", tmp_path / "x.csv") == 0
