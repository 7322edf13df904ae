"""A short run of `make fuzz` and `make crash`, and a proof that both can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")


def run(what: str, cases: int, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", str(RUN), what, "--cases", str(cases), "--out", str(out)]
    quick = {**os.environ, "PUE_FUZZ_MODELS": "linear"}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=quick)


def lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One ground for both: to make its models takes longest."""
    return tmp_path_factory.mktemp("fuzz")


def test_altered_inputs_end_in_words_or_in_whole_results(out: Path) -> None:
    ended = run("fuzz", 40, out)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-2000:]
    assert "40 cases, 0 failed" in ended.stdout


def test_crashes_lose_nothing_and_the_next_run_goes_on(out: Path) -> None:
    ended = run("crash", 8, out)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-2000:]
    assert {line["end"] for line in lines(out / "crash.jsonl")} >= {"killed"}


def test_a_crash_a_hang_and_a_wrong_answer_are_failures(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver with a worker that dies at its second case, is silent at its third and is wrong at its fourth."""
    worker = out / "worker.py"
    worker.write_text(
        "import json, os, sys, time\n"
        "for seed in range(int(sys.argv[4]), int(sys.argv[5])):\n"
        "    print(json.dumps({'seed': seed, 'begins': True}), flush=True)\n"
        "    if seed == 1: os.abort()\n"
        "    if seed == 2: time.sleep(60)\n"
        "    line = {'seed': seed, 'kind': 'x', **({'failed': 'wrong'} if seed == 3 else {'end': 'fine'})}\n"
        "    print(json.dumps(line), flush=True)\n"
    )
    sys.path.insert(0, str(RUN.parent))
    import run as driver

    monkeypatch.setattr(driver, "MOST_SECONDS", 1)
    monkeypatch.setattr(driver, "MOST_WAITING", 2)
    monkeypatch.setattr(driver, "HERE", out)
    (out / "run.py").write_text(worker.read_text())
    monkeypatch.setitem(os.environ, "PYTHONFAULTHANDLER", "0")
    driver.drive("fuzz", out / "broken", 2)
    found = driver.drive("fuzz", out / "broken", 5)  # goes on where it was
    assert [line["seed"] for line in found] == [0, 1, 2, 3, 4]
    assert ["failed" in line for line in found] == [False, True, True, True, False]
    text = driver.report("fuzz", found)
    assert "5 cases, 3 failed" in text
    assert "the process ended with -6" in text
    assert "no end after 1 s" in text
    sys.path.remove(str(RUN.parent))
