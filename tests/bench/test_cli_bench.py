"""`pue bench` from outside: what it prints, how it exits, and that nothing is lost or done twice."""

from __future__ import annotations

import io
import json
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import bench_process
import pytest
import toml_text
from fabricated import fabricated
from rich.console import Console
from same_run import comparable

from pue.app.cli import COMMANDS, main
from pue.bench.execute import RunOutcome
from pue.bench.record import Record
from pue.bench.report.live import Board, watching
from pue.bench.suites import SUITES, resolve
from pue.methods import METHODS

TINY = ["--preset", "smoke", "--set", "epochs=1", "--set", "rows=200", "--set", "labels.n_labeled=30"]
ROWS = ["--methods", "upu,nnpu,naive,supervised"]  # 8 rows: three have estimated or true propensities


def command(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return end.value.code or 0, printed.out, printed.err


def records(folder: Path) -> dict[str, dict]:
    return {path.name: json.loads(path.read_text()) for path in sorted(folder.glob("digits/*.json"))}


def estimates(folder: Path) -> dict[str, list[float]]:
    return {path.name: json.loads(path.read_text())["values"] for path in folder.glob("propensities/*.json")}


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file()]


def require_same(folder: Path, reference: Path) -> None:
    ours, theirs = records(folder), records(reference)
    assert {name: comparable(record) for name, record in ours.items()} == {
        name: comparable(record) for name, record in theirs.items()
    }
    assert estimates(folder) == estimates(reference)
    assert leftovers(folder) == []


# --------------------------------------------------------------------------------------- in this process


def test_a_bench_runs_resumes_and_starts_afresh(capsys, tmp_path):
    arguments = ["bench", "digits", *TINY, "--methods", "nnpu", "--seeds", "2", "--jobs", "0", "--out", tmp_path]
    code, out, err = command(capsys, *arguments)
    assert code == 0
    assert err.count("computed") == 6
    assert re.search(r"nnPUe +2 +\d+\.\d\d ± \d+\.\d\d", out)
    first = records(tmp_path)
    assert len(first) == 6
    assert len(estimates(tmp_path)) == 2
    code, out, err = command(capsys, *arguments)
    assert (code, err.count("computed"), err.count("found")) == (0, 0, 6)
    assert records(tmp_path) == first
    name = next(iter(first))
    (tmp_path / "digits" / name).write_text("{")
    code, out, err = command(capsys, *arguments)
    assert "is damaged" in err.replace("\n", " ")
    assert (code, err.count(", computed"), err.count("found")) == (0, 1, 5)
    code, out, err = command(capsys, *arguments, "--fresh")
    assert (code, err.count("computed")) == (0, 6)
    assert {name: comparable(record) for name, record in records(tmp_path).items()} == {
        name: comparable(record) for name, record in first.items()
    }


def test_a_dry_run_lists_keys_and_does_nothing(capsys, tmp_path):
    code, out, _ = command(capsys, "bench", "mnist", "--dry-run", "--seeds", "3,5", "--out", tmp_path)
    assert code == 0
    keys = [line.split()[0] for line in out.splitlines()[:-1]]
    assert keys == [spec.key[:12] for spec in resolve("mnist", seeds=[3, 5])]
    assert out.splitlines()[-1] == "46 runs"
    assert list(tmp_path.iterdir()) == []


def test_runs_may_come_from_a_file(capsys, tmp_path):
    spec = resolve("digits", preset="smoke", methods=["naive"])[0]
    (tmp_path / "mine.toml").write_text(toml_text.dumps(spec.to_dict()))
    code, out, _ = command(capsys, "bench", "--spec", tmp_path / "mine.toml", "--dry-run")
    assert (code, out.split()[0]) == (0, spec.key[:12])
    code, out, _ = command(capsys, "bench", "--spec", tmp_path / "mine.toml", "--dry-run", "--seeds", "4,5")
    assert (code, out.splitlines()[-1]) == (0, "2 runs")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bench"], "which suite?"),
        (["bench", "mnits"], "Did you mean 'mnist'"),
        (["bench", "digits", "--preset", "quick"], "unknown preset of digits 'quick'"),
        (["bench", "digits", "--methods", "nnpuu"], "Did you mean"),
        (["bench", "digits", "--seeds", "many"], "seeds must be a number"),
        (["bench", "digits", "--seeds", "-1"], "seeds must be a number"),
        (["bench", "digits", "--plugin", "nowhere.py"], "nowhere.py. A plugin is a Python file that adds to"),
        (["bench", "digits", "--seeds", "5-3"], "seeds must be a number"),
        (["bench", "digits", "--set", "epochs"], "--set takes name=value"),
        (["bench", "digits", "--set", "epoch=3"], "Did you mean 'epochs'"),
        (["bench", "digits", "--set", "epochs=few"], "epochs must be a whole number"),
        (["bench", "digits", "--jobs", "-1"], "jobs must not be negative"),
        (["bench", "digits", "--dataset", "mnist"], "runs on digits"),
        (["bench", "--spec", "nowhere.toml"], "cannot read nowhere.toml"),
        (["data", "get", "mnits"], "mnist"),
    ],
)
def test_errors_are_one_line_and_exit_with_2(capsys, arguments, message):
    code, out, err = command(capsys, *arguments)
    assert code == 2
    assert message in err
    assert err.startswith("pue: ")
    assert len(err.splitlines()) == 1
    assert out == ""


def test_a_failed_run_is_reported_at_the_end_and_exits_with_1(capsys, tmp_path):
    arguments = ["bench", "digits", *TINY, "--methods", "nnPU,naive", "--seeds", "1", "--jobs", "0", "--out", tmp_path]
    code, _, err = command(capsys, *arguments, "--set", "image_size=32")
    assert code == 1
    assert err.splitlines()[-1].startswith("failed: naive seed 0")
    assert "cannot be resized" in err


def test_help_names_every_suite_and_command(capsys):
    suites = re.search(r"Suites: ([^.]*)\.", COMMANDS["bench"].__doc__)[1].split(",")
    assert sorted(name.strip() for name in suites) == sorted(SUITES)
    code, out, _ = command(capsys, "--help")
    assert code == 0
    assert all(name in out for name in COMMANDS)


def test_data_sets_are_listed(capsys, tmp_path):
    code, out, _ = command(capsys, "data", "list", "--data", tmp_path)
    assert code == 0
    assert re.search(r"digits +there", out)
    assert re.search(r"cifar10 +missing", out)


def test_a_terminal_sees_a_live_table():
    specs = resolve("mix-ablation", dataset="digits", seeds=[0, 1], preset="smoke")
    board = Board(specs, jobs=2)
    for spec, accuracy in zip(specs[:2], (90.0, 80.0), strict=True):
        board.start(spec)
        board.seconds = {}
        board.end(RunOutcome(spec, "computed", Record.from_dict(fabricated(spec.to_dict(), accuracy=accuracy))))
        board.seconds[spec.key] = 10.0
    board.end(RunOutcome(specs[2], "failed", error="killed"))
    board.start(specs[3])
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(board.table())
    shown = console.export_text()
    assert "3 of 32 runs, about 2:2" in shown  # 29 runs of 10 s each by 2 processes
    first, *_, last = [line for line in shown.splitlines() if line.startswith("Dist-PU ")]
    assert "mix .20/.20/.20/.20/.20" in first
    assert first.split()[-3:] == ["1", "1", "90.00"]
    assert last.split()[-1] == "2"


def test_a_bench_on_a_terminal(tmp_path):
    specs = resolve("digits", preset="smoke", methods=["naive"])
    console = Console(force_terminal=True, file=io.StringIO(), width=100)
    with watching(specs, 1, console) as watch:
        watch.started(specs[0])
        watch.ended(RunOutcome(specs[0], "failed", error="killed"))
    assert "1 of 1 runs" in console.file.getvalue()


# -------------------------------------------------------------------------------------- other processes


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """An undisturbed bench, and how long it took."""
    folder = tmp_path_factory.mktemp("reference")
    process = bench_process.start(bench(folder, jobs=0), folder / "log")
    process.join()
    assert process.exitcode == 0, (folder / "log").read_text()
    assert len(records(folder)) == 16
    return folder


def bench(folder: Path, *, jobs: int) -> list[str]:
    return ["bench", "digits", *TINY, *ROWS, "--seeds", "2", "--jobs", str(jobs), "--out", str(folder)]


def test_killed_ten_times_and_resumed_gives_the_same_records(reference, tmp_path):
    moment = random.Random(0)
    seconds = [record["cost"]["wall_seconds"] for record in records(reference).values()]
    usual = sum(seconds) / len(seconds)
    kills = 0
    for attempt in range(40):
        began = time.time()
        jobs = 2 if attempt in (2, 5) else 0  # workers import everything anew, which takes time
        process = bench_process.start(bench(tmp_path, jobs=jobs), tmp_path / "log")
        while process.is_alive() and not any(written_since(lock, began) for lock in tmp_path.rglob(".*.lock")):
            time.sleep(0.002)
        time.sleep(moment.uniform(0, 1.5 * usual))
        process.kill()
        process.join()
        kills += process.exitcode == -signal.SIGKILL
        for record in records(tmp_path).values():  # each of them is whole, at any moment
            assert record["metrics"]
        if kills == 10:
            break
    assert kills == 10
    assert len(records(tmp_path)) < 16  # the last kill came before the end, so resuming had something to do
    process = bench_process.start(bench(tmp_path, jobs=0), tmp_path / "log")
    process.join()
    assert process.exitcode == 0
    require_same(tmp_path, reference)


def written_since(path: Path, moment: float) -> bool:
    try:
        return path.stat().st_mtime > moment - 0.01
    except FileNotFoundError:
        return False


def test_two_benches_at_once_share_the_work(reference, tmp_path):
    logs = [tmp_path / "one", tmp_path / "two"]
    folder = tmp_path / "runs"
    both = [bench_process.start(bench(folder, jobs=2 * number), log) for number, log in enumerate(logs)]
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    said = [log.read_text() for log in logs]
    computed = [
        line.split("] ")[1].split(":")[0] for text in said for line in text.splitlines() if ", computed" in line
    ]
    assert len(computed) == len(set(computed)) == 16  # each run once, by one of the two
    assert [len(re.findall(", (computed|found)", text)) for text in said] == [16, 16]  # and both know all of them
    require_same(folder, reference)


def test_ctrl_c_stops_everything_without_a_traceback(tmp_path):
    folder = tmp_path / "runs"
    arguments = [sys.executable, "-m", "pue", *bench(folder, jobs=2), "--set", "epochs=1000000"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not list(folder.rglob(".*.lock")):
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode in (130, -signal.SIGINT)  # by the signal itself where it met an exec; 130 to a shell
    assert "Traceback" not in out + err
    assert records(folder) == {}


def test_a_method_in_a_file_runs_in_another_process(capsys, tmp_path):
    (tmp_path / "mine.py").write_text("from pue import METHODS\n\nMETHODS['mine'] = METHODS['nnpu']\n")
    spec = resolve("digits", preset="smoke", methods=["nnPU"])[0].to_dict()
    (tmp_path / "mine.toml").write_text(toml_text.dumps({**spec, "method": "mine"}))
    how = ["bench", "--plugin", tmp_path / "mine.py", "--spec", tmp_path / "mine.toml", "--seeds", "0", "--jobs", "1"]
    try:
        code, out, err = command(capsys, *how, "--set", "epochs=1", "--out", tmp_path / "runs")
        assert (code, "mine" in out) == (0, True), err
    finally:
        METHODS.pop("mine", None)
    (tmp_path / "broken.py").write_text("1 / 0")
    code, _, err = command(capsys, "bench", "digits", "--plugin", tmp_path / "broken.py", "--dry-run")
    assert code == 2
    assert "broken.py fails: ZeroDivisionError: division by zero" in err
