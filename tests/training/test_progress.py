"""Progress: silent where nobody looks, a line an epoch where asked for, a bar on a terminal."""

import io

import pytest
import torch
from rich.console import Console

from pue.backbones import InputSpec, build
from pue.core.data import PUData
from pue.core.risks import upu
from pue.core.weights import uniform
from pue.training import Batching, EpochRecord, Training, train
from pue.training.progress import _Clock, describe, step_progress

RECORDS = [EpochRecord(0, 0.51234, 0.25, 1.0), EpochRecord(1, 0.4, 0.0, 1.0, 0.45678)]


def console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=120)


def shown(console: Console, *, show: bool | None, done: int = 0) -> str:
    with step_progress(2, "epoch", title="training", done=done, show=show, console=console) as move:
        for record in RECORDS[done:]:
            move(record.epoch + 0.5)
            move(record.epoch + 1, status=describe(record))
    return console.file.getvalue()


def test_it_is_silent_where_there_is_no_terminal() -> None:
    assert shown(console(terminal=False), show=None) == ""


@pytest.mark.parametrize("terminal", [True, False])
def test_it_is_silent_if_told_so(terminal: bool) -> None:
    assert shown(console(terminal=terminal), show=False) == ""


def test_without_a_terminal_it_prints_a_line_an_epoch_if_asked_to() -> None:
    assert shown(console(terminal=False), show=True).splitlines() == [
        "training epoch 1/2  risk 0.5123  ascent 25%",
        "training epoch 2/2  risk 0.4000  ascent 0%  held-out 0.4568",
    ]


def test_a_long_line_is_not_broken_in_two() -> None:
    narrow = Console(file=io.StringIO(), force_terminal=False, width=20)
    assert len(shown(narrow, show=True).splitlines()) == 2


@pytest.mark.parametrize("show", [None, True])
def test_on_a_terminal_there_is_a_bar_with_the_numbers(show: bool | None) -> None:
    text = shown(console(terminal=True), show=show)
    assert "━" in text
    assert "2/2" in text
    assert "risk 0.4000  ascent 0%  held-out 0.4568" in text
    assert "ETA" in text


def test_a_resumed_bar_starts_where_the_run_does() -> None:
    screen = console(terminal=True)
    with step_progress(10, "epoch", title="training", done=7, console=screen):
        pass
    assert "7/10" in screen.file.getvalue()


def test_the_text_holds_risk_and_ascent_and_the_held_out_risk_where_there_is_one() -> None:
    assert describe(RECORDS[0]) == "risk 0.5123  ascent 25%"
    assert describe(RECORDS[1]) == "risk 0.4000  ascent 0%  held-out 0.4568"


@pytest.mark.parametrize(("progress", "lines"), [(None, 0), (False, 0), (True, 3)])
def test_training_reports_to_standard_error(
    progress: bool | None, lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    data = PUData(torch.randn(40, 2, generator=torch.Generator().manual_seed(0)), (torch.arange(40) < 10).int())
    network = build("linear", InputSpec((2,)), seed=0)
    training = Training(epochs=3, batching=Batching(16))
    train(network, data, uniform(data.labels, prior=0.5), upu(), training, seed=0, progress=progress)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("risk ") == lines


def test_a_line_now_and_then_whichever_run_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("pue.training.progress.time.monotonic", lambda: now[0])
    monkeypatch.setattr("pue.training.progress._CLOCK", _Clock())
    quiet = console(terminal=False)
    for _ in range(10):  # runs of 25 seconds
        with step_progress(5, "epoch", title="training", show=60.0, console=quiet) as move:
            for epoch in range(5):
                now[0] += 5
                move(epoch + 1, status="risk")
    assert len(quiet.file.getvalue().splitlines()) == 4
