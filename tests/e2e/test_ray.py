"""The engine Ray: the same records, rankings and bytes as locally, whatever happens to its workers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet
from same_run import comparable

from pue.app import ray_fit, ray_predict
from pue.app.cli import main
from pue.app.model import load_model
from pue.app.ray_predict import score_on
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.sources.opening import BATCH, open_source
from pue.bench.execute import Place, RunOutcome, Watch, execute, keep
from pue.bench.spec import Spec
from pue.bench.store import Store
from pue.bench.suites import resolve
from pue.engines import Cluster, cluster, ray_cluster, tasks
from pue.engines.cluster import require_package, require_ray_at
from pue.engines.tasks import Tasks
from pue.errors import EngineError, InvalidInput

pytest.importorskip("ray", reason="the extra ray is not installed")
# Ray Data sets and copies its settings field by field, those included that it has deprecated itself.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context")

CHANGES = {"epochs": 1, "rows": 300, "labels.n_labeled": 30}
ROWS = ["upu", "nnpu", "naive", "supervised"]  # 8 rows: some with estimated or true propensities
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    """One Ray for all tests: commands in this process use the one that is there."""
    with ray_cluster(workers=2) as started:
        yield started


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def command(*arguments: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return int(end.value.code or 0), out, err

    return command


# ------------------------------------------------------------------------------------------------- bench


@pytest.fixture(scope="module")
def specs() -> list[Spec]:
    found = resolve("digits", preset="smoke", dataset=None, methods=ROWS, seeds=[0, 1, 2], changes=CHANGES)
    assert len(found) == 24
    return found


@pytest.fixture(scope="module")
def local(specs: list[Spec], tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    place = Place("digits", Store(tmp_path_factory.mktemp("local")))
    return [comparable(outcome.record) for outcome in execute(specs, place, jobs=0) if outcome.record]


def busy_workers(title: bytes = b"ray::attempt") -> list[int]:
    """Processes of our own Ray that are at a run: the raylet is our child, and they are its children."""
    parents, titles = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            titles[int(folder.name)] = (folder / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
    ours = [pid for pid, found in titles.items() if found.startswith(title)]
    return [pid for pid in ours if parents.get(parents[pid]) == os.getpid()]


def kill_one(title: bytes, killed: list[int]) -> None:
    """The first worker that is busy with this, half a second after it was seen."""
    deadline = time.monotonic() + 90
    while not killed and time.monotonic() < deadline:
        for pid in busy_workers(title)[:1]:
            time.sleep(0.5)
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        time.sleep(0.02)


def test_a_bench_has_the_records_of_a_local_one_even_if_a_worker_is_killed(
    shared: Cluster, specs: list[Spec], local: list[dict[str, Any]], tmp_path: Path
) -> None:
    killed: list[int] = []
    running: set[str] = set()
    most = 0

    def started(spec: Spec) -> None:
        nonlocal most
        running.add(spec.key)
        most = max(most, len(running))

    def ended(outcome: RunOutcome) -> None:
        running.discard(outcome.spec.key)
        if not killed:
            for pid in busy_workers()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    place = Place("digits", Store(tmp_path))
    watch = Watch(started=started, postponed=lambda spec: running.discard(spec.key), ended=ended)
    outcomes = execute(specs, place, watch=watch, cluster=shared)
    assert len(killed) == 1
    assert most <= shared.workers
    assert [outcome.spec for outcome in outcomes] == specs
    assert {outcome.error for outcome in outcomes} == {""}
    assert [comparable(outcome.record) for outcome in outcomes if outcome.record] == local
    stored = [json.loads(place.store.run("digits", spec).path.read_text()) for spec in specs]
    assert [comparable(record) for record in stored] == local
    assert {outcome.state for outcome in execute(specs, place, cluster=shared)} == {"found"}


def test_a_run_that_somebody_else_computes_is_asked_for_again(
    shared: Cluster, specs: list[Spec], tmp_path: Path
) -> None:
    place, postponed = Place("digits", Store(tmp_path)), []
    with ExitStack() as held:
        held.enter_context(place.store.run("digits", specs[0]).claim(wait=True))

        def asked(spec: Spec) -> None:
            postponed.append(spec)
            held.close()

        outcomes = execute(specs[:1], place, watch=Watch(postponed=asked), cluster=shared)
    assert postponed
    assert [outcome.state for outcome in outcomes] == ["computed"]


def test_a_record_that_a_worker_wrote_elsewhere_is_written_here(
    specs: list[Spec], local: list[dict[str, Any]], tmp_path: Path
) -> None:
    there, here = (Place("digits", Store(tmp_path / name)) for name in ("there", "here"))
    (outcome,) = execute(specs[:1], there, jobs=0)
    keep(outcome, here)
    entry = here.store.run("digits", specs[0])
    assert entry.read() == outcome.record
    before = entry.path.stat().st_mtime_ns
    keep(outcome, here)
    keep(RunOutcome(specs[1], "failed", error="diverged"), here)
    assert [path.stat().st_mtime_ns for path in tmp_path.glob("here/digits/*")] == [before]


def test_a_run_that_fails_is_reported_as_locally(run: Run, shared: Cluster, tmp_path: Path) -> None:
    arguments = ["bench", "mnist", "--preset", "smoke", "--methods", "nnPU", "--seeds", "1", "--data", tmp_path / "no"]
    code, _, err = run(*arguments, "--engine", "ray", "--out", tmp_path / "runs")
    assert code == 1
    assert "MissingData: there is no folder" in err


def test_a_worker_that_dies_each_time_is_an_outcome(shared: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "RETRIES", 0)

    def die() -> None:
        os._exit(1)

    flight = Tasks[str](shared, die)
    flight.start("run")
    ((key, result),) = flight.ended()
    assert key == "run"
    assert isinstance(result, EngineError)
    assert "its worker died 1 times" in str(result)
    assert (len(flight), list(flight.ended())) == (0, [])


# ----------------------------------------------------------------------------------- compare and predict


def table(n: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    frame = pd.DataFrame({"name": [f"r{row}" for row in range(n)], "a": rng.normal(size=n) + 2 * y, "e": 0.5})
    frame["b"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    frame["s"] = (y & (rng.random(n) < 0.5)).astype(int)
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and rows for it: one file of several row groups, and the same rows in several files."""
    folder = tmp_path_factory.mktemp("rows")
    table(300).to_parquet(folder / "train.parquet")
    arguments = ["fit", folder / "train.parquet", "--label", "s", "--id", "name", "--prior", "0.4", "-q"]
    options = ["--propensity", "column:e", "--method", "logistic", "-o", folder / "model"]
    with pytest.raises(SystemExit, match="0"):
        main([str(argument) for argument in (*arguments, *options)])
    frame = table(2 * BATCH + 5000, seed=1)
    parquet.write_table(pa.Table.from_pandas(frame), folder / "rows.parquet", row_group_size=30_000)
    (folder / "parts").mkdir()
    for number, start in enumerate(range(0, len(frame), 50_000)):
        frame.iloc[start : start + 50_000].to_parquet(folder / "parts" / f"{number}.parquet", index=False)
    return folder


@pytest.mark.parametrize(
    ("rows", "suffix", "options"),
    [
        ("rows.parquet", ".parquet", []),
        ("parts", ".csv", []),
        ("parts", ".parquet", ["--budget", "500", "--posterior"]),
    ],
    ids=["row groups", "files", "budget"],
)
def test_predictions_are_the_same_bytes(
    rows: str, suffix: str, options: list[str], run: Run, shared: Cluster, folder: Path, tmp_path: Path
) -> None:
    said = []
    for engine in ("local", "ray"):
        output = tmp_path / f"{engine}{suffix}"
        code, out, err = run(
            "predict", folder / "model", folder / rows, "-o", output, "--engine", engine, "--json", *options
        )
        assert (code, err) == (0, "")
        said.append({**json.loads(out), "output": ""})
    assert said[0] == said[1]
    assert (tmp_path / f"local{suffix}").read_bytes() == (tmp_path / f"ray{suffix}").read_bytes()


def test_rows_whose_number_is_not_known_are_refused(run: Run, shared: Cluster, folder: Path, tmp_path: Path) -> None:
    table(50).to_csv(tmp_path / "rows.csv", index=False)
    code, _, err = run("predict", folder / "model", tmp_path / "rows.csv", "-o", tmp_path / "o.csv", "--engine", "ray")
    assert code == 2
    assert "Write it as Parquet" in err
    assert not (tmp_path / "o.csv").exists()


def test_what_goes_wrong_in_a_worker_is_said_as_locally(
    run: Run, shared: Cluster, folder: Path, tmp_path: Path
) -> None:
    bad = table(100)
    bad.loc[70, "e"] = 0.0
    bad.to_parquet(tmp_path / "bad.parquet")
    arguments = ["predict", folder / "model", tmp_path / "bad.parquet", "-o", tmp_path / "o.csv", "--posterior"]
    results = [run(*arguments, "--engine", engine) for engine in ("local", "ray")]
    assert results[0] == results[1]
    assert results[0][0] == 2
    assert "column 'e' must hold propensities" in results[0][2]
    assert list(tmp_path.glob("*o.csv*")) == []


def test_a_row_group_that_is_cut_is_said_as_locally(run: Run, shared: Cluster, folder: Path, tmp_path: Path) -> None:
    content = bytearray((folder / "rows.parquet").read_bytes())
    middle = len(content) // 2
    content[middle : middle + 200_000] = bytes(200_000)  # the footer is sound: only reading the group tells
    (tmp_path / "cut.parquet").write_bytes(content)
    arguments = ["predict", folder / "model", tmp_path / "cut.parquet", "-o", tmp_path / "o.parquet"]
    for engine in ("local", "ray"):
        code, _, err = run(*arguments, "--engine", engine)
        assert code == 2
        assert "cut.parquet is damaged or not a Parquet file" in " ".join(err.split())
        assert [path.name for path in tmp_path.iterdir()] == ["cut.parquet"]


def test_a_worker_that_is_killed_changes_no_prediction(
    run: Run, shared: Cluster, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["predict", folder / "model", folder / "rows.parquet", "--quiet"]
    assert run(*arguments, "-o", tmp_path / "local.parquet")[0] == 0
    score_range = ray_predict._score_range

    def slowly(ranges: pa.Table, job: Any) -> Iterator[pa.Table]:
        time.sleep(2)  # long enough to be killed
        yield from score_range(ranges, job)

    monkeypatch.setattr(ray_predict, "_score_range", slowly)
    killed: list[int] = []
    killer = threading.Thread(target=kill_one, args=(b"ray::MapBatches", killed))
    killer.start()
    code, _, err = run(*arguments, "-o", tmp_path / "ray.parquet", "--engine", "ray")
    killer.join()
    assert (code, len(killed)) == (0, 1), err
    assert (tmp_path / "local.parquet").read_bytes() == (tmp_path / "ray.parquet").read_bytes()


def test_rows_that_no_worker_can_read(shared: Cluster, folder: Path, tmp_path: Path) -> None:
    table(50).to_parquet(tmp_path / "rows.parquet")
    source = open_source(tmp_path / "rows.parquet")
    (tmp_path / "rows.parquet").unlink()
    with pytest.raises((InvalidInput, OSError), match=r"rows\.parquet"):
        list(score_on(shared, load_model(folder / "model"), source))


def test_a_comparison_has_the_ranking_and_the_numbers_of_a_local_one(
    run: Run, shared: Cluster, folder: Path, tmp_path: Path
) -> None:
    options = ["--label", "s", "--ignore", "name", "--ignore", "e", "--prior", "0.4", "--folds", "2"]
    candidates = ["--propensity", "logistic", "--candidates", "logistic,logistic+logistic,logistic+constant"]
    found = {}
    for engine in ("local", "ray"):
        arguments = ["compare", folder / "train.parquet", *options, *candidates, "--engine", engine]
        code, out, _ = run(*arguments, "--out", tmp_path / engine, "--json")
        assert code == 0
        found[engine] = json.loads(out)
    for result in (*found["local"]["results"], *found["ray"]["results"]):
        del result["seconds"]
    assert found["ray"] == found["local"]
    assert [path.name for path in sorted((tmp_path / "ray").iterdir())] == [
        path.name for path in sorted((tmp_path / "local").iterdir())
    ]


# -------------------------------------------------------------------------------------------- connection


def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.parametrize("command", ["bench", "predict"])
def test_an_address_where_nothing_answers(command: str, run: Run, folder: Path, tmp_path: Path) -> None:
    arguments = {
        "bench": ["bench", "digits", "--preset", "smoke", "--out", tmp_path / "runs"],
        "predict": ["predict", folder / "model", folder / "parts", "-o", tmp_path / "o.csv"],
    }
    address = f"127.0.0.1:{closed_port()}"
    began = time.monotonic()
    code, out, err = run(*arguments[command], "--engine", "ray", "--address", address)
    assert time.monotonic() - began < 20
    assert (code, out) == (2, "")
    assert f"there is no Ray at {address}" in err
    assert "Start one with" in err
    assert not list(tmp_path.iterdir())


def test_something_else_at_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWER", 0.5)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(EngineError, match=r"what answers at .* is not Ray"),
    ):
        require_ray_at(f"127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("address", ["head", "head:", ":6379", "head:x", "head:70000", ""])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(InvalidInput, match="an address is host:port"):
        require_ray_at(address)


def test_rays_client_is_refused_with_a_remedy() -> None:
    with pytest.raises(InvalidInput, match=r"address of Ray's client.*--address auto.*ray job submit"):
        require_ray_at("ray://head:10001")


def test_workers_without_the_package_or_with_another_version(shared: Cluster) -> None:
    def lacking() -> str:
        raise ModuleNotFoundError("No module named 'pue'")

    with pytest.raises(EngineError, match=r"lack the package pue\. Install it there: pip install 'pue\[ray\]=="):
        require_package(shared.ray, lacking)
    with pytest.raises(EngineError, match=r"have pue 0\.0\.9, this is "):
        require_package(shared.ray, lambda: "0.0.9")


def test_ray_that_is_not_installed(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(cluster.importlib, "import_module", absent)
    code, _, err = run("bench", "digits", "--preset", "smoke", "--engine", "ray", "--out", tmp_path)
    assert code == 2
    assert "Install it: pip install 'pue[ray]'" in " ".join(err.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--engine", "rya"], "unknown engine 'rya'. Did you mean 'ray'?"),
        (["--workers", "2"], "--address and --workers are of the engine ray"),
        (["--address", "head:6379"], "--address and --workers are of the engine ray"),
        (["--engine", "ray", "--jobs", "2"], "With --engine ray say --workers"),
    ],
)
def test_options_that_contradict_each_other(options: list[str], message: str, run: Run, tmp_path: Path) -> None:
    code, _, err = run("bench", "digits", "--preset", "smoke", "--out", tmp_path, *options)
    assert code == 2
    assert message in err
    assert not list(tmp_path.iterdir())


def test_a_ray_that_is_connected_is_used_and_left_as_it_is(shared: Cluster) -> None:
    with ray_cluster() as again:
        assert again == replace(shared, workers=2)
    assert shared.ray.is_initialized()
    with pytest.raises(InvalidInput, match="workers must be at least 1"), ray_cluster(workers=0):
        pass


# ------------------------------------------------------------------------------------------------- fit


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    y = rng.random(600) < 0.4
    frame = pd.DataFrame(rng.normal(size=(600, 2)) + 2 * y[:, None], columns=["a", "b"])
    frame["s"] = (y & (rng.random(600) < 0.5)).astype(int)
    path = tmp_path_factory.mktemp("fit") / "t.parquet"
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=100)
    return path


FIT = ("--label", "s", "--prior", "0.4", "--propensity", "none", "--method", "nnpu", "--epochs", "12", "--quiet")


def parameters(model: Path) -> np.ndarray:
    network = load_model(model).classifier.network_
    return np.concatenate([parameter.detach().numpy().ravel() for parameter in network.parameters()])


def test_workers_fit_the_model_of_one_process_even_if_one_is_killed(
    shared: Cluster, run: Run, small: Path, tmp_path: Path
) -> None:
    assert run("fit", small, *FIT, "-o", tmp_path / "here")[0] == 0
    killed: list[int] = []
    killer = threading.Thread(target=kill_one, args=(b"ray::RayTrainWorker", killed))
    killer.start()
    code, _, err = run("fit", small, *FIT, "-o", tmp_path / "there", "--engine", "ray", "--workers", 2)
    killer.join()
    assert code == 0, err
    assert len(killed) == 1
    np.testing.assert_allclose(parameters(tmp_path / "there"), parameters(tmp_path / "here"), rtol=0, atol=1e-5)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["here", "there"]


def test_more_workers_than_processors_are_refused(shared: Cluster, run: Run, small: Path, tmp_path: Path) -> None:
    code, _, err = run("fit", small, *FIT, "-o", tmp_path / "model", "--engine", "ray", "--workers", 3)
    assert code == 2
    assert "3 workers need as many CPUs, but the cluster has 2" in " ".join(err.split())
    assert list(tmp_path.iterdir()) == []


class Train:
    """Ray Train with one worker that is this process."""

    class Checkpoint:
        from_directory = staticmethod(lambda folder: shutil.copytree(folder, Train.kept))

    kept: Path

    @staticmethod
    def report(metrics: dict[str, Any], checkpoint: Path) -> None:
        assert metrics == {}
        assert checkpoint == Train.kept


def test_an_error_of_all_workers_is_handed_over(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_fit.importlib, "import_module", lambda name: Train)
    Train.kept = tmp_path / "kept"
    recipe = Recipe(method="boosting", prior=0.4, propensity=None)
    ray_fit._work({"job": ray_fit.Job(small, Roles("s"), recipe, memory=10_000)})
    kind, message = json.loads((Train.kept / ray_fit.ERROR).read_text())
    assert kind == "InvalidInput"
    assert "needs all of them in memory" in message
    with pytest.raises(InvalidInput, match="needs all of them in memory"):
        ray_fit.brought_back(Train.kept)
