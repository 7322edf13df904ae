"""The demo: whole, on one seed, with its tables and plots."""

from pathlib import Path

import pytest

from pue.demo.__main__ import main
from pue.demo.experiment import MIX, run


def test_demo_prints_tables_and_writes_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "1", "--jobs", "1", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "Dist-PU" in printed
    assert "n = 1 seeds" in printed
    for name in ("weights.png", "accuracy.png"):
        assert (tmp_path / name).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["accuracy.png", "weights.png"]


def test_true_propensities_give_every_digit_its_share() -> None:
    outcome = run("nnpu", "true", 0)
    gap = sum(abs(outcome.shares[digit] - outcome.population[digit]) for digit in MIX) / 2
    plain = run("nnpu", "plain", 0)
    assert gap < 0.1 < sum(abs(plain.shares[digit] - plain.population[digit]) for digit in MIX) / 2


def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--seeds", "0"])
    assert "at least 1" in capsys.readouterr().err
