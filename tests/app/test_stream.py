"""More rows than memory: pieces of a table, the shuffle, the weights of streamed rows, and `pue fit --memory`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet
from torch import Tensor

from pue import PUClassifier
from pue.app import stream as streaming
from pue.app.cli import main
from pue.app.fit_source import open_rows
from pue.app.recipe import Recipe
from pue.app.roles import Roles
from pue.app.rows import Rows
from pue.app.sources.opening import open_source
from pue.app.stream import StreamedRows, stream_rows
from pue.app.survey import survey_rows
from pue.core.data import PUData
from pue.core.folds import row_hash
from pue.core.machine import available_memory, parse_bytes, show_bytes
from pue.core.risks import nnpu, upu
from pue.core.weights import normalized_inverse_propensity
from pue.errors import InvalidInput
from pue.training import Batching, Training, train
from pue.training.streamed import Streamed

N = 6_000


def frame(n: int = N, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    x = rng.normal(size=(n, 3)).astype(np.float32) + 1.8 * y[:, None].astype(np.float32)
    e = 1 / (1 + np.exp(1.5 - x[:, 0]))
    s = (y & (rng.random(n) < e)).astype(np.int8)
    return pd.DataFrame(x, columns=["a", "b", "c"]).assign(s=s, y=y.astype(np.int8), e=e, row=np.arange(n))


def write(path: Path, table: pd.DataFrame, group: int = 100) -> Path:
    parquet.write_table(pa.Table.from_pandas(table, preserve_index=False), path, row_group_size=group)
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("stream") / "t.parquet", frame())


ROLES = Roles("s", id="row", truth="y", ignore=("e",))


@pytest.fixture
def rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> StreamedRows:
    return streamed(path, monkeypatch)


def streamed(path: Path, monkeypatch: pytest.MonkeyPatch, roles: Roles = ROLES, **options: Any) -> StreamedRows:
    """A stream with a buffer of 200 rows, so that there is something to shuffle."""
    monkeypatch.setattr(streaming, "READ", 100)
    monkeypatch.setattr(streaming, "HELD_ROWS", 300)
    monkeypatch.setattr(streaming, "HELD_LABELED", 100)
    source = open_source(path)
    survey = survey_rows(source, roles, most=1)
    assert not len(survey.labels)  # nothing is kept of rows that will not fit
    return stream_rows(source, roles, survey, memory=100_000, **options)  # type: ignore[arg-type]


def in_memory(path: Path) -> Rows:
    found = open_rows(open_source(path), ROLES, Recipe())
    assert isinstance(found, Rows)
    return found


def as_set(x: Tensor) -> set[bytes]:
    return {row.numpy().tobytes() for row in x}


# --------------------------------------------------------------------------------- pieces of a table


def test_the_pieces_of_a_parquet_file_are_its_row_groups_and_its_rows(path: Path, tmp_path: Path) -> None:
    table = open_source(path)
    assert [piece.n_rows for piece in table.pieces] == [100] * 60  # type: ignore[attr-defined]
    assert all(piece.n_bytes > 100 * 3 * 4 for piece in table.pieces)  # type: ignore[attr-defined]
    parts = [part for piece in table.pieces for part in table.batches(60, ["row"], piece)]  # type: ignore[attr-defined]
    assert pd.concat(parts)["row"].tolist() == list(range(N))
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in (0, 1):
        write(folder / f"{number}.parquet", frame().iloc[3000 * number : 3000 * (number + 1)], 1_000)
    several = open_source(folder)
    read = [several.batches(columns=["row"], piece=piece) for piece in several.pieces]  # type: ignore[attr-defined]
    assert [int(next(batch)["row"].iloc[0]) for batch in read] == [0, 1000, 2000, 3000, 4000, 5000]
    frame().to_csv(tmp_path / "t.csv", index=False)
    (whole,) = open_source(tmp_path / "t.csv").pieces  # type: ignore[attr-defined]
    assert sum(len(part) for part in open_source(tmp_path / "t.csv").batches(piece=whole)) == N  # type: ignore[call-arg]


def test_a_parquet_file_that_changes_or_is_cut_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", frame())
    source = open_source(path)
    batches = source.batches(100)
    next(batches)
    write(path, frame(seed=1))
    os.utime(path, ns=(1, 1))
    with pytest.raises(InvalidInput, match=r"t\.parquet changed while it was read"):
        list(batches)
    with pytest.raises(InvalidInput, match=r"t\.parquet changed while it was read"):
        next(source.batches(100))
    # Bytes in the middle of a row group are gone, the footer is sound: only reading the group tells.
    opened = open_source(path)
    content = bytearray(path.read_bytes())
    content[2_000:8_000] = bytes(6_000)
    path.write_bytes(content)
    os.utime(path, ns=(1, 1))
    with pytest.raises(InvalidInput, match=r"t\.parquet is damaged or not a Parquet file"):
        list(opened.batches(100))


def test_reading_a_table_keeps_nothing_of_the_row_groups_before(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", pd.concat([frame()] * 20, ignore_index=True), group=4_000)
    before = pa.total_allocated_bytes()
    held = [pa.total_allocated_bytes() - before for _ in open_source(path).batches(4_000)]
    assert len(held) == 30
    assert max(held) < path.stat().st_size / 3


# -------------------------------------------------------------------------------------- the rows


def test_every_row_is_kept_held_out_or_streamed_once(rows: StreamedRows, path: Path) -> None:
    whole = in_memory(path).data
    once = torch.cat(list(rows.blocks(1, 0, 1)))
    assert len(once) == rows.n_streamed == sum(rows.shares(1, 1))
    held = torch.from_numpy(row_hash(whole.x) < rows.threshold)
    assert as_set(once) == as_set(whole.x[whole.unlabeled & ~held])
    assert as_set(rows.x[:-1]) == as_set(whole.x[whole.labeled & ~held])
    judges = rows.held_out
    assert as_set(judges.x[judges.labeled]) == as_set(whole.x[whole.labeled & held])
    assert as_set(judges.x[judges.unlabeled]) < as_set(whole.x[whole.unlabeled & held])
    # Those that judge stand for all that are held out.
    assert judges.sample_weight is not None
    assert float(judges.sample_weight[judges.unlabeled].sum()) == pytest.approx(
        int((whole.unlabeled & held).sum()), rel=0.2
    )
    assert rows.counts[1] == whole.n_labeled == len(rows.labeled_numbers())
    assert torch.equal(rows.labeled_features(torch.arange(rows.counts[1])), whole.x[rows.labeled_numbers()])
    sample, numbers = rows.sample(100, 0)
    assert torch.equal(sample.x, whole.x[numbers])
    assert torch.equal(sample.labels, whole.labels[numbers])


@pytest.mark.parametrize("size", [2, 3, 20])
def test_processes_share_the_rows_without_overlap_or_loss(rows: StreamedRows, size: int) -> None:
    parts = [list(rows.blocks(7, rank, size)) for rank in range(size)]
    assert [sum(map(len, part)) for part in parts] == rows.shares(7, size)
    together = torch.cat([block for part in parts for block in part])
    assert len(together) == rows.n_streamed
    assert as_set(together) == as_set(torch.cat(list(rows.blocks(1, 0, 1))))


def test_rows_come_in_another_order_every_time_from_near_and_far(rows: StreamedRows, path: Path) -> None:
    x = in_memory(path).data.x
    where = {row.numpy().tobytes(): number for number, row in enumerate(x)}

    def order(seed: int) -> np.ndarray:
        return np.array([where[row.numpy().tobytes()] for block in rows.blocks(seed, 0, 1) for row in block])

    first, again, other = order(1), order(1), order(2)
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()
    steps = np.abs(np.diff(first))
    assert np.median(steps) > 300  # neighbors in the table are not neighbors in the stream
    assert (steps == 1).mean() < 0.01
    for part in np.array_split(first, 5):  # and every stretch of it holds rows from all over the table
        assert len(np.unique(part // 1000)) == 6


# ------------------------------------------------------------------------------------- the weights


class Repeated:
    """A stream of rows that are in memory after all."""

    def __init__(self, x: Tensor) -> None:
        self.x = x

    def shares(self, seed: int, size: int) -> list[int]:
        return [len(self.x[rank::size]) for rank in range(size)]

    def blocks(self, seed: int, rank: int, size: int) -> Iterator[Tensor]:
        own = self.x[rank::size]
        order = torch.randperm(len(own), generator=torch.Generator().manual_seed(seed))
        yield from own[order].split(7)


def problem() -> tuple[PUData, Tensor, PUData, Repeated]:
    """Rows in memory, propensities, and the same rows as a stream."""
    table = frame(400, seed=3)
    order = np.argsort(-table["s"], kind="stable")
    x = torch.from_numpy(table[["a", "b", "c"]].to_numpy(np.float64)[order])
    labels = torch.from_numpy(table["s"].to_numpy(np.int64)[order])
    n = int(labels.sum())
    mass = torch.cat([torch.ones(n), torch.tensor([400.0 - n])]).double()
    small = PUData(x[: n + 1], labels[: n + 1], sample_weight=mass)
    return PUData(x, labels), torch.from_numpy(table["e"].to_numpy()[order][:n]), small, Repeated(x[n:])


def weighted(data: PUData, e: Tensor) -> Any:
    return normalized_inverse_propensity(data.labels, e, prior=0.45, sample_weight=data.sample_weight)


def network() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1), torch.nn.Flatten(0)
    ).double()


@pytest.mark.parametrize("risk", [upu(), nnpu()])
def test_a_stream_in_one_batch_takes_the_steps_of_memory(risk: Any) -> None:
    data, e, small, stream = problem()
    settings = Training(epochs=20, batching=Batching(800), lr=0.05)
    ours, theirs = network(), network()
    train(ours, data, weighted(data, e), risk, settings, seed=0, progress=False)
    train(theirs, small, weighted(small, e), risk, settings, seed=0, progress=False, stream=stream)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=1e-9)


@pytest.mark.parametrize("labeled_rows", ["weighted", "drawn"])
def test_batches_of_a_stream_add_up_to_the_weights_of_all_rows(labeled_rows: Any) -> None:
    data, e, small, stream = problem()
    training = Training(batching=Batching(64, labeled_rows=labeled_rows))
    feed = Streamed(stream, small, weighted(small, e), training, dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    draws = [draw for _ in range(200) for draw in feed.epoch(generator)]
    assert len(draws) == 200 * feed.steps
    whole = weighted(data, e)
    for name in ("positive", "negative"):
        weights = getattr(whole, name)
        means = [(getattr(draw.weights, name) @ draw.x) for draw in draws]
        expected = weights @ data.x
        spread = torch.stack(means).std(dim=0) / len(means) ** 0.5
        assert ((torch.stack(means).mean(dim=0) - expected).abs() < 4 * spread + 1e-9).all()
    shares = torch.stack([draw.share.sum() for draw in draws])
    assert shares.mean() == pytest.approx(1, abs=0.02)
    assert {len(draw.rows) for draw in draws} <= {58, 59}


def test_what_a_stream_cannot_do_is_refused(rows: StreamedRows) -> None:
    common: dict[str, Any] = {"epochs": 1, "progress": False}
    for options, match in (
        ({"method": "distpu", "prior": 0.4}, "looks at all rows at once"),
        ({"prior": "estimate"}, "prior and propensities are not estimated from a stream"),
        ({"prior": 0.4, "propensity": "auto"}, "prior and propensities are not estimated from a stream"),
        ({"prior": 0.4, "validation": 0.1}, "rows of a stream are not held out"),
        ({"prior": 0.4, "batching": "joint"}, "stratified batches, not joint"),
    ):
        with pytest.raises(InvalidInput, match=match):
            PUClassifier(**{**common, **options}).fit_stream(rows)
    short = Repeated(torch.zeros(5, 3))
    _, e, small, _ = problem()
    with pytest.raises(InvalidInput, match="the stream has 5 unlabeled rows, but"):
        train(network(), small, weighted(small, e), upu(), Training(epochs=1), seed=0, stream=short)
    short.shares = lambda seed, size: [400 - len(e)]  # type: ignore[method-assign]
    short.x = short.x.double()
    with pytest.raises(InvalidInput, match="the stream ended before all rows that were counted had come"):
        train(network(), small, weighted(small, e), upu(), Training(epochs=1), seed=0, stream=short)


def test_a_streamed_fit_continues_from_its_checkpoint(rows: StreamedRows, tmp_path: Path) -> None:
    def classifier(folder: Path | None) -> PUClassifier:
        return PUClassifier(prior=0.4, epochs=4, random_state=0, progress=False, checkpoint_dir=folder)

    def fit(folder: Path | None) -> Tensor:
        return torch.cat([p.detach().flatten() for p in classifier(folder).fit_stream(rows).network_.parameters()])

    class Stopped(StreamedRows):
        passes = 0

        def blocks(self, seed: int, rank: int, size: int) -> Iterator[Tensor]:
            Stopped.passes += 1
            if Stopped.passes == 3:
                raise KeyboardInterrupt
            return super().blocks(seed, rank, size)

    with pytest.raises(KeyboardInterrupt):
        classifier(tmp_path).fit_stream(Stopped(**vars(rows)))
    assert torch.equal(fit(tmp_path), fit(None))


# ------------------------------------------------------------------------------------- pue fit --memory


@dataclass(frozen=True)
class Ended:
    exit_code: int
    stdout: str
    output: str


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """A command in this process."""

    def command(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Ended(int(end.value.code or 0), printed.out, printed.out + printed.err)

    return command


def test_fit_streams_what_does_not_fit_and_finds_the_same(run: Run, path: Path, tmp_path: Path) -> None:
    common = (
        "fit",
        path,
        "--label",
        "s",
        "--truth",
        "y",
        "--id",
        "row",
        "--propensity",
        "column:e",
        "--prior",
        "0.4",
        "--method",
        "nnpu",  # streamed rows are a network's
        "--epochs",
        "10",
        "--json",
    )
    whole = run(*common, "-o", tmp_path / "whole")
    small = run(*common, "-o", tmp_path / "streamed", "--memory", "200KB")
    assert whole.exit_code == small.exit_code == 0, small.output
    both = [json.loads(found.stdout) for found in (whole, small)]
    assert both[0]["data"] == both[1]["data"]
    for name in ("accuracy", "recall", "precision"):
        ours, theirs = (found["metrics"]["values"][name] for found in both)
        assert theirs["low"] - 0.02 <= ours["value"] <= theirs["high"] + 0.02, name
    truth = []
    for model in ("whole", "streamed"):
        found = run("evaluate", tmp_path / model, path, "--truth", "y", "--json")
        truth.append(json.loads(found.stdout)["truth"]["accuracy"])
    assert truth[1] > truth[0] - 0.02


@pytest.mark.parametrize("scenario", ["single_sample", "case_control"])
def test_known_propensities_and_scenarios_stream(path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str) -> None:
    found = streamed(path, monkeypatch, Roles("s", id="row", truth="y", propensity="e"), scenario=scenario)
    table = frame()
    assert found.propensity is not None
    np.testing.assert_array_equal(found.propensity, table["e"].to_numpy()[found.labeled_numbers().numpy()])
    assert found.data.scenario.value == scenario
    assert found.n_training + int(found.held_out.labeled.sum()) == table["s"].sum()


def test_what_cannot_be_streamed_is_said_before_the_work(run: Run, path: Path, tmp_path: Path) -> None:
    common = ("fit", path, "--label", "s", "-o", tmp_path / "model", "--ignore", "e", "--prior", "0.4")
    for extra, match in (
        (("--memory", "200KB", "--method", "boosting"), "needs all of them in memory"),
        (("--memory", "200KB", "--method", "distpu"), "use a method that streams"),
        (("--memory", "20KB"), "the labeled rows alone take"),
        (("--memory", "much"), "'much' is no amount of memory"),
        (("--memory", "0GB"), "is no amount of memory"),
    ):
        found = run(*common, *extra)
        assert found.exit_code == 2, found.output
        assert match in " ".join(found.output.split())
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_changes_between_the_passes_leaves_nothing_behind(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.parquet", frame())
    real = streaming._read

    def changing(*arguments: Any, **options: Any) -> Any:
        write(path, frame(seed=5))
        return real(*arguments, **options)

    monkeypatch.setattr(streaming, "_read", changing)
    found = run("fit", path, "--label", "s", "-o", tmp_path / "model", "--prior", "0.4", "--memory", "200KB")
    assert found.exit_code == 2
    assert "changed while it was read" in " ".join(found.output.split())
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.parquet"]


def test_amounts_of_memory() -> None:
    assert parse_bytes("2 gb") == 2_000_000_000
    assert show_bytes(1_234) == "1.23 KB"
    assert 10**8 < available_memory() < 10**15
    for wrong in ("", "GB", "-1GB", "1 PB", "1e9"):
        with pytest.raises(InvalidInput, match="is no amount of memory"):
            parse_bytes(wrong)
