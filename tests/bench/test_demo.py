"""The demo: whole, on one seed, with its tables and plots."""

from pathlib import Path

import pytest

from pue.app.cli import main
from pue.bench.presets import LABELS
from pue.bench.report.demo import DIGITS, POPULATION, WEIGHTS, demo_specs, weight_shares
from pue.bench.suites import resolve, row_name


def command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as end:
        main(["demo", *map(str, arguments)])
    return int(end.value.code or 0)


def test_demo_prints_tables_and_writes_plots(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--seeds", 1, "--jobs", 1, "--out", tmp_path) == 0
    printed = capsys.readouterr().out
    assert "Dist-PU" in printed
    assert "n = 1 seeds" in printed
    for name in ("weights.png", "accuracy.png"):
        assert (tmp_path / name).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["accuracy.png", "weights.png"]


def test_the_demo_is_the_suite_with_a_linear_model() -> None:
    rows = {row_name(spec): spec.labels for spec in resolve("digits")}
    specs = demo_specs(2)
    assert len({spec.key for spec in specs}) == 18
    assert all(rows[row_name(spec)] == spec.labels for spec in specs)
    assert {spec.settings.backbone for spec in specs} == {"linear"}


def test_weights_give_every_digit_its_share() -> None:
    shares = weight_shares(1)
    assert list(shares) == [*WEIGHTS.values(), POPULATION]
    assert all(len(found) == len(DIGITS) and sum(found) == pytest.approx(1) for found in shares.values())
    assert shares["labels as they are"] == pytest.approx(LABELS["digits"].mix, abs=0.1)
    plain, estimated, true = (
        sum(abs(ours - share) for ours, share in zip(shares[name], shares[POPULATION], strict=True)) / 2
        for name in WEIGHTS.values()
    )
    assert true < 0.1 < 0.4 < plain
    assert estimated < plain / 2


def test_wrong_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("--seeds", 0) == 2
    assert "greater than or equal to 1" in capsys.readouterr().err
